package cli_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// TestHostileCells prints a row of one agent between those of others.
func TestHostileCells(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	rows := []string{"one", strings.Repeat("x", 5000) + "\x1b[31m", "a\u202eb", "two\nlines"}
	columns := []cli.Column[string]{{Header: "name", Value: func(s string) string { return s }}, {Header: "end", Value: func(string) string { return "e" }}}
	if err := cli.PrintTable(&out, cli.NewOutput(cli.TableFmt), rows, columns); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 1+len(rows) {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		if len(line) > 200 || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
}
