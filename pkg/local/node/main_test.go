package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "enter":
		fmt.Fprintln(os.Stderr, sandbox.Enter())
		os.Exit(1)
	case os.Getenv(role) != "":
		entrypoint(os.Getenv(role))
	default:
		controlplane.Main(m, &cp, controlplane.WithScheduler())
		if err := goleak.Find(controlplane.Connections()); err != nil {
			panic(err)
		}
	}
}

func entrypoint(role string) {
	switch role {
	case "fail":
		fmt.Println("failing with", os.Args[1:])
		os.Exit(7)
	case "touch":
		if err := os.WriteFile(os.Args[1], []byte("by init"), 0o600); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ignoring")
		clock.RealClock{}.Sleep(time.Hour) // Without a timer, the runtime would call it a deadlock.
	case "serve":
		serve()
	}
}

// seen is what a container tells about itself.
type seen struct {
	PID  int
	Args []string
	Env  map[string]string
}

// serve answers on the Pod's address until it is asked to end: / tells what it
// sees, /file the content of a file, /health whether /state/well exists.
func serve() {
	fmt.Println("serving")
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s := seen{PID: os.Getpid(), Args: os.Args[1:], Env: map[string]string{}}
		for _, variable := range os.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			s.Env[name] = value
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(r.FormValue("path"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	})
	mux.HandleFunc("/set", func(_ http.ResponseWriter, r *http.Request) {
		_ = os.WriteFile(r.FormValue("path"), nil, 0o600)
	})
	mux.HandleFunc("/unset", func(_ http.ResponseWriter, r *http.Request) { _ = os.Remove(r.FormValue("path")) })
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat("/state/well"); err != nil {
			http.Error(w, "not well", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) {
		fmt.Println("crashing")
		syscall.Exit(3) // past the coverage report of the test binary
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: net.JoinHostPort(os.Getenv("POD_IP"), "8000"), Handler: mux}
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			fmt.Println(err)
			os.Exit(1)
		}
	}()
	<-ctx.Done()
	fmt.Println("ending")
	_ = server.Close()
}
