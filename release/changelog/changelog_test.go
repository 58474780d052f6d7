package changelog_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/release/changelog"
)

const history = `# Changelog

## Unreleased

## 0.2.0 - 2027-01-02

### Added

- What is new.

## [0.1.0]

- The first.
`

func TestSection(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.2.0": "### Added\n\n- What is new.\n",
		"0.1.0": "- The first.\n",
	} {
		if got, err := changelog.Section(history, version); err != nil || got != want {
			t.Errorf("%s: got %q, %v", version, got, err)
		}
	}
	for _, version := range []string{"0.2", "0.3.0", "Unreleased"} {
		if got, err := changelog.Section(history, version); err == nil {
			t.Errorf("%s: got %q", version, got)
		}
	}
}

func TestAbsolute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see ([guide](docs/guides/aws.md)).":                    "see ([guide](https://example.com/v1/docs/guides/aws.md)).",
		"[skew](docs/guides/install.md#build-it) and [b](b.md)": "[skew](https://example.com/v1/docs/guides/install.md#build-it) and [b](https://example.com/v1/b.md)",
		"[other](https://example.org/a.md) [x][]":               "[other](https://example.org/a.md) [x][]",
		"[below](#below), `f(a)`, (docs/guides/install.md)":     "[below](#below), `f(a)`, (docs/guides/install.md)",
	} {
		if got := changelog.Absolute(text, "https://example.com/v1"); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}
