//go:build linux

// Command testtimes records what each test binary of a run costs, and prints a table
// of it. "make test-times" uses it.
//
//	testtimes exec DIR BINARY [ARGUMENTS]   the -exec of go test: runs one test binary
//	testtimes table DIR                     prints what DIR has, as Markdown
//
// Started under the name of a program of the control plane, it counts that start and
// then becomes the program: LOCALKUBE points to it while a run is recorded.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// isProgram says that a name is one of localkube that it is started as.
func isProgram(name string) bool {
	return slices.Contains([]string{"etcd", apiServer, "kube-controller-manager", "kube-scheduler", "kubectl", "localkube"}, name)
}

const apiServer = "kube-apiserver"

var errUsage = errors.New("usage: testtimes exec DIR BINARY [ARGUMENTS] | testtimes table DIR")

func main() {
	err := run(os.Args)
	var exit exitError
	switch {
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch name := filepath.Base(args[0]); {
	case isProgram(name):
		return become(name, args)
	case len(args) > 1 && isProgram(args[1]):
		return become(args[1], args)
	case len(args) > 3 && args[1] == "exec":
		return record(args[2], args[3:])
	case len(args) == 3 && args[1] == "table":
		return printTable(os.Stdout, args[2])
	default:
		return errUsage
	}
}
