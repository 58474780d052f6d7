package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":       "",
		"12345":  "12345",
		"123456": "12345...",
		"1234é":  "1234...",
		"123é":   "123é",
		"123é6":  "123é...",
		"12🙂":    "12...",
		"1🙂7":    "1🙂...",
	} {
		if got := excerpt.Of(text, 5); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestNoCharacters: bytes that are no text are bounded as well.
func TestNoCharacters(t *testing.T) {
	t.Parallel()
	got := excerpt.Of(strings.Repeat("\x80", 1000), 100)
	if len(got) > 103 || len(got) < 100-utf8.UTFMax {
		t.Errorf("%d bytes", len(got))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]string{
		"":                          nil,
		"a, b, c, d, e":             {"a", "b", "c", "d", "e"},
		"a, b, c, d, e, and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := excerpt.List(list, ", "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
