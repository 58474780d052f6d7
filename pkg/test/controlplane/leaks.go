package controlplane

import "go.uber.org/goleak"

// Connections are goroutines that outlive tests on leased control planes: client-go keeps
// its connections to API servers that run on.
func Connections() goleak.Option {
	return goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run")
}

// Leaks is an error if a goroutine of what a package tests outlives Main.
// Connections that are kept open are of the tests' own clients.
func Leaks() error {
	return goleak.Find(
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("internal/poll.runtime_pollWait"),
		// It ends 15 seconds after a connection whose server is gone was to be used.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).Ping"),
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane.Main.func1"),
	)
}
