// Package controlplane gives tests a real Kubernetes control plane: etcd, API
// server and controller manager, started in seconds, on ports that the system
// picks, gone with the test.
//
//	func TestSomething(t *testing.T) {
//		cp := controlplane.Start(t)
//		c := cp.Client(t)                                       // admin, our scheme
//		agent := cp.ConfigFor(t, "system:open-cluster-management:c1:a", "system:authenticated")
//		...
//	}
//
// or one for all tests of a package, each in a namespace of its own:
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) { controlplane.Main(m, &cp) }
//
// Options: WithoutSigner (a hub that issues no client certificates),
// WithCertDuration (short-lived certificates), WithScheduler,
// WithIssuer (of ServiceAccounts' tokens), WithAPIServerArgs,
// WithEgress (the way of API server to webhooks behind Services).
//
// Faults: StopAPIServer (kill -9) and StartAPIServer keep the address; Kill and
// StartProgram do the same for any program.
//
// Nothing survives: the processes die with the test binary, however that ends,
// and a directory that a killed test left is removed by the next one.
//
// The localkube binary is the file in the environment variable LOCALKUBE, or
// bin/localkube under the module's root. A missing binary fails the test with
// the command that builds it; it never skips.
package controlplane
