//go:build linux

// Command testpool runs a command, usually go test, with a pool of control planes that
// all its tests lease from (package pool), and ends with the command's exit code.
//
//	testpool COMMAND [ARGUMENTS]
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane/pool"
)

func main() {
	err := run(os.Args[1:])
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command []string) error {
	if len(command) == 0 {
		return errors.New("usage: testpool COMMAND [ARGUMENTS]")
	}
	binary, err := controlplane.FindLocalkube()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "testpool-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "pool")
	// The command ends first, also on an interrupt: its tests return what they lease.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	planes := pool.New(binary, report)
	served := make(chan error, 1)
	go func() { served <- pool.Serve(listener, planes) }()
	failed := execute(ctx, append(os.Environ(), controlplane.PoolVariable+"="+socket), command)
	failed = errors.Join(failed, listener.Close(), <-served)
	started, leased := planes.Counts()
	planes.Close()
	fmt.Fprintf(os.Stderr, "testpool: %d control planes were leased %d times\n", started, leased)
	return failed
}

func report(err error) { fmt.Fprintln(os.Stderr, "testpool:", err) }

// execute runs the command until it ends; on an interrupt, which the terminal sends to
// it as well, it is given time to.
func execute(ctx context.Context, env, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}
