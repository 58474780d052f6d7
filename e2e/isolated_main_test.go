package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolatedVariable makes this test binary a helper process, see isolate.
const isolatedVariable = "E2E_ISOLATED_SERVERS"

// isolate makes command run in a network of its own, where it can listen on
// any port and reach nothing but servers (HOST:PORT on this machine's loopback).
// Programs that serve on a fixed port of all addresses need it: here, unlike on
// a real node, all Pods share one network.
func isolate(t *testing.T, command *exec.Cmd, servers ...string) {
	t.Helper()
	sockets := map[string]string{}
	dir := t.TempDir()
	for i, server := range servers {
		sockets[server] = filepath.Join(dir, strconv.Itoa(i))
		stop, err := forward(t.Context(), "unix", sockets[server], "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	encoded, err := json.Marshal(sockets)
	if err != nil {
		t.Fatal(err)
	}
	command.Args = append([]string{"isolated", command.Path}, command.Args[1:]...)
	command.Path = "/proc/self/exe"
	command.Env = append(command.Environ(), isolatedVariable+"="+string(encoded))
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// runIsolated is what the helper process does.
func runIsolated(encoded string) error {
	var sockets map[string]string
	if err := json.Unmarshal([]byte(encoded), &sockets); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("setting up the loopback interface: %w", err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	for server, socket := range sockets {
		stop, err := forward(ctx, "tcp", server, "unix", socket)
		if err != nil {
			return err
		}
		defer stop()
	}
	command := exec.CommandContext(ctx, os.Args[1], os.Args[2:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command.Run()
}

// loopbackUp starts the one interface that a new network has.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// forward passes connections on until the returned function is called.
func forward(ctx context.Context, network, address, toNetwork, toAddress string) (func(), error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := dialer.DialContext(ctx, toNetwork, toAddress)
				if err != nil {
					return // The client sees the connection end.
				}
				defer func() { _ = out.Close() }()
				// The end of either way is the end of both.
				done := make(chan struct{}, 2)
				for _, way := range [][2]net.Conn{{out, in}, {in, out}} {
					go func() {
						_, _ = io.Copy(way[0], way[1])
						done <- struct{}{}
					}()
				}
				<-done
			}()
		}
	}()
	return func() {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			fmt.Fprintln(os.Stderr, "closing the listener:", err)
		}
	}, nil
}
