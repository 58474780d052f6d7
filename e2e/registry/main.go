// Command registry serves a container registry that takes tokens of
// ServiceAccounts for passwords, and pushes and pulls images, for the end-to-end
// suite of image pull secrets.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

// run runs a command.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: serve, push or pull")
	}
	switch command, flags := args[0], args[1:]; command {
	case "serve":
		return serve(ctx, flags)
	case "push":
		return client(ctx, command, flags, push)
	case "pull":
		return client(ctx, command, flags, pull)
	default:
		return fmt.Errorf("unknown command %q: it is serve, push or pull", command)
	}
}
