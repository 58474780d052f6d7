// Package controlplane gives tests a real Kubernetes control plane: etcd, API
// server and controller manager, on ports that the system picks.
//
// A test that acts on the whole cluster, as most controllers do, leases one for itself:
//
//	func TestSomething(t *testing.T) {
//		cp := controlplane.Lease(t)
//		c := cp.Client(t)                                       // admin, our scheme
//		agent := cp.ConfigFor(t, "system:open-cluster-management:c1:a", "system:authenticated")
//		...
//	}
//
// Tests that can live next to each other share one, each in a namespace of its own:
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) { controlplane.Main(m, &cp) }
//
// Both lease from the pool of the run and return the control plane to it for a reset
// (package pool). "make test" and "go run ./scripts/testpool COMMAND" serve the pool at
// the socket in CONTROLPLANE_POOL; a test binary that runs alone has a pool of its own.
//
// A test that kills a program of the control plane, or needs flags that only it can use,
// starts one with Start. StopAPIServer (kill -9) and StartAPIServer keep the address; Kill
// and StartProgram do the same for any program.
//
// Options: WithoutSigner (a hub that issues no client certificates),
// WithCertDuration (short-lived certificates), WithScheduler,
// WithIssuer (of ServiceAccounts' tokens), WithAPIServerArgs, WithAuditLog,
// WithEgress (the way of API server to webhooks behind Services).
//
// Nothing survives: the processes die with the process that started them, however that
// ends, and the next process removes the directory that a killed one left.
//
// The localkube binary is the file in the environment variable LOCALKUBE, or
// bin/localkube under the module's root. A missing binary fails the test with
// the command that builds it; it never skips.
package controlplane
