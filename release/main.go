// Command release packs the built programs: into a container image with image, and into
// what users download and package managers install with dist. The Makefile runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to stop.
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name what to make: image or dist")
	}
	switch args[0] {
	case "image":
		return makeImage(ctx, args[1:])
	case "dist":
		return makeDist(ctx, args[1:])
	default:
		return fmt.Errorf("nothing is called %q; there are image and dist", args[0])
	}
}
