package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are how a run is configured.
type settings struct {
	managed   int
	nodeImage string
	retain    bool
	logs      string
	// archives hold the images.
	archives []string
	command  []string
}

func main() {
	s, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err == nil {
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, s)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e-kind:", err)
		os.Exit(1)
	}
}

// parse reads the flags and the variables for users.
func parse(args []string) (settings, error) {
	s := settings{nodeImage: os.Getenv("NODE_IMAGE"), retain: os.Getenv("KEEP") != ""}
	flags := flag.NewFlagSet("e2e-kind", flag.ContinueOnError)
	flags.StringVar(&s.logs, "logs", "e2e-kind-logs", "where logs of the nodes go after a failure")
	flags.Func("archive", "an archive of an image, to load into every cluster", func(path string) error {
		s.archives = append(s.archives, path)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.command = flags.Args(); len(s.command) == 0 {
		return s, errors.New("there is no command; name one behind the flags")
	}
	var err error
	if s.managed, err = strconv.Atoi(cmp.Or(os.Getenv("CLUSTERS"), "4")); err != nil || s.managed < 1 {
		return s, fmt.Errorf("CLUSTERS is %q; it must be a number from 1 on", os.Getenv("CLUSTERS"))
	}
	return s, nil
}

// run creates the clusters, runs the command and deletes the clusters.
func run(ctx context.Context, s settings) (err error) {
	if err := checkInotify(inotifyLimit, s.managed+1); err != nil {
		return err
	}
	f, err := newFleet(s)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.exportLogs(s.logs))
		}
		if !s.retain {
			err = errors.Join(err, f.down())
		}
	}()
	if err := f.up(ctx); err != nil {
		return err
	}
	environment, err := f.environment()
	if err != nil {
		return err
	}
	if s.retain {
		fmt.Println("The clusters stay. To use them:\n  export " + strings.Join(environment, " "))
	}
	return execute(ctx, environment, s.command)
}

// execute runs the command in a process group of its own. An interrupt reaches all of the
// group: a shell that runs the tests would not pass it on. They have a while to clean up.
func execute(ctx context.Context, environment, command []string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // Running it is what this is for.
	c.Env = append(os.Environ(), environment...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }
	c.WaitDelay = time.Minute
	err := c.Run()
	if ctx.Err() != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // What has not ended by now.
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}
