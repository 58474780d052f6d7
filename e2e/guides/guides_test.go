package guides_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// pages are run in one shell and on one set of clusters, as a reader would who
// follows them in this order.
var pages = []string{
	"get-started.md",
	"guides/works.md",
	"guides/clusters.md",
	"guides/addons.md",
	"guides/workload-tokens.md",
	"guides/image-pull-secrets.md",
}

// block is the commands of a page, and what they must print.
type block struct {
	page, kind, text string
	// output is nil where the page shows none.
	output *string
}

func TestGuides(t *testing.T) {
	t.Parallel()
	controlplane.Localkube(t)
	follow(t, pages...)
}

// follow runs the commands of pages, and at the end those that clean up.
func follow(t *testing.T, pages ...string) {
	t.Helper()
	var run, cleanup []block
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, b := range blocks(page, string(data)) {
			if b.kind == "cleanup" {
				cleanup = append(cleanup, b)
			} else {
				run = append(run, b)
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s has no block that is run", page)
		}
	}
	s := newShell(t)
	t.Cleanup(func() { s.run(context.WithoutCancel(t.Context()), t, cleanup) })
	s.run(t.Context(), t, run)
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	const page = "```sh run\na\n```\n\ntext\n\n```text output\nb ... c\n```\n\n```\nnot run\n```\n```sh cleanup\nd\n```\n```sh run\ne\n```\n"
	got := blocks("page.md", page)
	if len(got) != 3 || got[0].text != "a\n" || got[0].output == nil || *got[0].output != "b ... c\n" ||
		got[1].kind != "cleanup" || got[2].text != "e\n" || got[2].output != nil {
		t.Errorf("%+v", got)
	}
	for got, want := range map[string]bool{"b  x c\n": true, "b x c\nmore\n": false, "b c\n": false, "": false} {
		if matches(got, "b ... c\n") != want {
			t.Errorf("%q matches: %v", got, !want)
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```(sh run|sh cleanup|text output)\n(.*?)^```$")

// blocks are those of a page that are run, in order.
func blocks(page, text string) []block {
	var all []block
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == "text output" && len(all) > 0 {
			all[len(all)-1].output = &m[2]
			continue
		}
		all = append(all, block{page: page, kind: strings.TrimPrefix(m[1], "sh "), text: m[2]})
	}
	return all
}

var blanks = regexp.MustCompile(`[ \t]+`)

// matches reports whether commands printed what a page shows.
func matches(got, want string) bool {
	normal := func(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }
	pattern := strings.ReplaceAll(regexp.QuoteMeta(normal(want)), `\.\.\.`, `.+`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(normal(got))
}

// shell is where the commands of a reader run.
type shell struct {
	env []string
	// work is the working directory, out has what each block printed.
	work, out string
	// state has the variables that the blocks before exported.
	state string
}

// newShell has what a reader has installed on the PATH, and a data directory of
// its own.
func newShell(t *testing.T) *shell {
	t.Helper()
	bin, data, home := t.TempDir(), t.TempDir(), t.TempDir()
	s := &shell{work: t.TempDir(), out: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		filepath.Join(bin, "kubectl-ocm"): "bin/kubectl-ocm",
		filepath.Join(bin, "clusteradm"):  "bin/kubectl-ocm",
		filepath.Join(bin, "kubectl"):     "bin/kubectl",
		filepath.Join(bin, "kind"):        "bin/kind",
		filepath.Join(s.work, "examples"): "examples",
		filepath.Join(s.work, "bin"):      "bin",
	} {
		if err := os.Symlink(filepath.Join(root, target), name); err != nil {
			t.Fatal(err)
		}
	}
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_DATA_HOME="+data, "HOME="+home,
		"LOCALKUBE="+filepath.Join(root, "bin/localkube"), "KUBECONFIG=")
	return s
}

// run runs blocks in one shell, and fails with the first that fails.
func (s *shell) run(ctx context.Context, t *testing.T, all []block) {
	t.Helper()
	var script strings.Builder
	script.WriteString("set -euo pipefail\n[ ! -e " + s.state + " ] || . " + s.state + "\ntrap 'export -p >" + s.state + "' EXIT\n")
	for i, b := range all {
		fmt.Fprintf(&script, "exec >%[1]s/%[2]d.out 2>%[1]s/%[2]d.err\n%[3]s\n", s.out, i, b.text)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir, cmd.Env = s.work, s.env
	failed := cmd.Run()
	for i, b := range all {
		stdout, err := os.ReadFile(filepath.Join(s.out, fmt.Sprintf("%d.out", i)))
		if err != nil {
			return // The one before ended the shell, and was reported.
		}
		_, next := os.Stat(filepath.Join(s.out, fmt.Sprintf("%d.out", i+1)))
		stderr, _ := os.ReadFile(filepath.Join(s.out, fmt.Sprintf("%d.err", i)))
		switch {
		case failed != nil && next != nil:
			t.Errorf("%s: %v:\n%s\nstdout:\n%s\nstderr:\n%s", b.page, failed, b.text, stdout, stderr)
		case b.output != nil && !matches(string(stdout), *b.output):
			t.Errorf("%s:\n%s\nprinted\n%s\ninstead of\n%s", b.page, b.text, stdout, *b.output)
		}
	}
	// The next call numbers its blocks from the start again.
	for i := range all {
		_ = os.Remove(filepath.Join(s.out, fmt.Sprintf("%d.out", i)))
	}
}
