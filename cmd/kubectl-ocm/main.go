// Command kubectl-ocm is the kubectl plugin, the drop-in for clusteradm and
// every controller, all in one binary. It names itself after what the user
// typed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/roots"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks to stop; the second one, no longer caught, kills.
	context.AfterFunc(ctx, stop)
	// Our image has nothing but this binary. A hub with a certificate of a public authority
	// is verified by these roots there.
	if err := roots.Fallback(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	name, args := calledAs(os.Args)
	env := cmd.Env{
		IOStreams: cmd.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Name:      name,
		Clock:     clock.RealClock{},
		Getenv:    os.Getenv,
	}
	return int(cmd.Execute(ctx, env, args))
}

// calledAs returns the name the user typed, and the arguments. kubectl completes
// the arguments of a plugin by calling kubectl_complete-PLUGIN.
func calledAs(argv []string) (name string, args []string) {
	switch base := strings.TrimSuffix(filepath.Base(argv[0]), ".exe"); base {
	case "kubectl_complete-ocm":
		return "kubectl ocm", append([]string{"__complete"}, argv[1:]...)
	case "ocm-credential-provider": // The kubelet finds its plugins by file name.
		return "kubectl ocm", append([]string{"pull-secrets", "credential-provider"}, argv[1:]...)
	case "clusteradm":
		return base, argv[1:]
	default:
		return "kubectl ocm", argv[1:]
	}
}
