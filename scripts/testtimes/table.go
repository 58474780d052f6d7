//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const module = "github.com/kubectl-ocm/kubectl-ocm"

// row is a package of the table. Subtests counts the tests as well.
type row struct {
	name            string
	wall, cpu       time.Duration
	starts          int
	tests, subtests int
	failed          bool
}

// everything is the row of the run itself, which "make test-times" records in the root
// of the module: compiling and the pool are part of it, like all packages.
const everything = "."

// printTable prints the packages, the most expensive first.
func printTable(w io.Writer, dir string) error {
	rows := map[string]*row{}
	if err := readCosts(dir, rows); err != nil {
		return err
	}
	if err := readEvents(filepath.Join(dir, eventsFile), rows); err != nil {
		return err
	}
	total := of(rows, everything)
	delete(rows, everything)
	all := []*row{{name: "the pool", starts: total.starts}}
	for _, r := range rows {
		all = append(all, r)
		total.starts, total.tests, total.subtests = total.starts+r.starts, total.tests+r.tests, total.subtests+r.subtests
	}
	slices.SortFunc(all, func(a, b *row) int { return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(a.name, b.name)) })
	total.name = "everything, compiling included"
	fmt.Fprintln(w, "| Package | Wall, s | CPU, s | Control planes | Tests | With subtests |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|")
	for _, r := range append(all, total) {
		failed := ""
		if r.failed {
			failed = " (failed)"
		}
		fmt.Fprintf(w, "| `%s`%s | %.1f | %.1f | %d | %d | %d |\n", r.name, failed, r.wall.Seconds(), r.cpu.Seconds(), r.starts, r.tests, r.subtests)
	}
	return nil
}

func of(rows map[string]*row, name string) *row {
	if rows[name] == nil {
		rows[name] = &row{name: name}
	}
	return rows[name]
}

func readCosts(dir string, rows map[string]*row) error {
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", costFile))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var c cost
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name, err := filepath.Rel(top, c.Package)
		if err != nil {
			return err
		}
		starts, err := os.ReadFile(filepath.Join(filepath.Dir(file), startsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r := of(rows, name)
		r.wall, r.cpu, r.starts = r.wall+c.Wall, r.cpu+c.CPU, r.starts+bytes.Count(starts, []byte("\n"))
	}
	return nil
}

// readEvents counts the tests in what go test -json printed.
func readEvents(file string, rows map[string]*row) error {
	events, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	scanner := bufio.NewScanner(events)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			continue // What the linker prints is not JSON.
		}
		r := func() *row { return of(rows, strings.TrimPrefix(strings.TrimPrefix(event.Package, module), "/")) }
		switch {
		case event.Action == "run" && strings.Contains(event.Test, "/"):
			r().subtests++
		case event.Action == "run":
			r().tests, r().subtests = r().tests+1, r().subtests+1
		case event.Action == "fail" && event.Test == "":
			r().failed = true
		}
	}
	return scanner.Err()
}
