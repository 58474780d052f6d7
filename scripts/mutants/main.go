// Command mutants changes the product as the list says, one change at a time,
// and runs the tests that must notice. Nothing in the tree is touched: the
// changed file is laid over it for the compiler.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// mutant is one change that some test must notice.
type mutant struct {
	// Breaks is what no longer holds with the change.
	Breaks string `json:"breaks"`
	// File is what is changed, Old what stands in it exactly once, New what
	// takes its place.
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Tests are packages, as for go test; the file's own if empty.
	Tests []string `json:"tests"`
	// Run selects among their tests; empty is all.
	Run string `json:"run"`
}

// outcome is what became of a mutant.
type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "SURVIVED"
	// stale ones no longer fit the file, or do not compile.
	stale outcome = "STALE"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // a main has no other
	err := run(ctx, os.Args[1:], os.Stdout)                               //nolint:forbidigo // the command's own
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:forbidigo // a main says how it went
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	list := flags.String("list", "scripts/mutants/mutants.yaml", "List of mutants")
	only := flags.String("only", "", "Regular expression for the files, or what breaks, of the mutants to try")
	least := flags.Float64("least", 90, "Least percentage that must be killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	mutants, err := read(*list)
	if err != nil {
		return err
	}
	count := map[outcome]int{}
	total := 0
	for _, m := range mutants {
		if !pattern.MatchString(m.File) && !pattern.MatchString(m.Breaks) {
			continue
		}
		result, detail, err := try(ctx, m)
		if err != nil {
			return err
		}
		total++
		count[result]++
		fmt.Fprintf(out, "%-8s  %s: %s%s\n", result, m.File, m.Breaks, detail)
	}
	if total == 0 {
		return errors.New("no mutant was tried")
	}
	score := 100 * float64(count[killed]) / float64(total)
	fmt.Fprintf(out, "%d of %d mutants killed: %.1f %%\n", count[killed], total, score)
	if count[stale] > 0 {
		return fmt.Errorf("%d mutants are stale: give them the text that their files have now", count[stale])
	}
	if score < *least {
		return fmt.Errorf("less than %.0f %% were killed", *least)
	}
	return nil
}

func read(path string) ([]mutant, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	if err := yaml.UnmarshalStrict(data, &mutants); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return mutants, nil
}

// try runs the tests of a mutant and returns what became of it.
func try(ctx context.Context, m mutant) (outcome, string, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return stale, " (" + err.Error() + ")", nil
	}
	tests := m.Tests
	if len(tests) == 0 {
		tests = []string{"./" + filepath.Dir(m.File)}
	}
	args := []string{"test", "-vet=off", "-failfast", "-timeout=10m", "-run=" + m.Run}
	command := exec.CommandContext(ctx, "go", append(args, tests...)...) //nolint:gosec // the list is ours
	// In the environment, so that a test which builds the product builds the mutant.
	command.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(output, []byte("no tests to run")):
		return stale, " (no test is called " + m.Run + ")", nil
	case err == nil:
		return survived, "", nil
	case !errors.As(err, &exit) || ctx.Err() != nil:
		return "", "", errors.Join(err, ctx.Err())
	case bytes.Contains(output, []byte("[build failed]")), bytes.Contains(output, []byte("[setup failed]")):
		return stale, " (it does not compile)\n" + string(output), nil
	}
	return killed, failures(output), nil
}

// failed finds the names of failed tests in go test's output.
var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failures names the tests that noticed.
func failures(output []byte) string {
	var names []string
	for _, match := range failed.FindAllSubmatch(output, -1) {
		names = append(names, string(match[1]))
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// overlay writes the changed file, and the overlay that the compiler reads.
func (m mutant) overlay(dir string) (string, error) {
	original, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(data, []byte(m.Old)); n != 1 {
		return "", fmt.Errorf("%q stands in it %d times", m.Old, n)
	}
	changed := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(changed, bytes.Replace(data, []byte(m.Old), []byte(m.New), 1), 0o600); err != nil { //nolint:gosec // the list is ours
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
