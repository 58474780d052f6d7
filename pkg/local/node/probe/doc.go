// Package probe asks containers whether they are alive, ready or started, as
// their probes say, and reports when the answer has changed for good.
//
// HTTP and TCP are real. HTTPS and gRPC probes pass when the port accepts
// connections, because a local node verifies every server that it talks TLS to and a
// probe names no CA. Exec probes are not run and count as passed;
// Supported says so.
package probe
