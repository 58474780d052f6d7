// Package sandbox runs one container as a local process in user, mount, PID,
// UTS and IPC namespaces of its own, without root and without a container
// runtime.
//
// What the process sees: a root of its own with its executable, its volumes at
// their real paths and, read-only, the parts of the host's file system that a
// dynamically linked executable needs (/usr, /lib, /etc, ...); no home
// directories, no /var, no /tmp unless the root is writable; only its own
// processes. What it shares with the host: the network, which is why pods have
// loopback addresses of their own.
//
// It gives no protection against hostile code: the images of local clusters
// are executables that the user could run directly.
//
// A container is started in two steps. Start runs our own executable in the new
// namespaces; there Enter builds the root, drops every capability and becomes
// the container's process, the first one of its PID namespace: when it ends or
// is killed, the kernel kills all it started.
package sandbox
