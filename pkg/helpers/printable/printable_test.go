package printable_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"plain text, größe 大 🙂":    "plain text, größe 大 🙂",
		"two\nlines\r\nand\ta tab": "two; lines; and a tab",
		"\x1b[2Jgone":              `\x1b[2Jgone`,
		"cluster\u202egnp.exe":     `cluster\u202egnp.exe`,
		"a\u2066b\u2069c":          `a\u2066b\u2069c`,
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"\u0085\u00a0":             `\u0085\u00a0`,
		"bytes \xff":               "bytes \ufffd",
	} {
		if got := printable.Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
