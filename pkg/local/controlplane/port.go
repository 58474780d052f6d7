package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// ErrPortInUse says that another program has taken the port that the cluster's
// kubeconfigs name.
var ErrPortInUse = errors.New("the port is in use")

// reservation is a bound socket that never listens. It reserves the port for sockets
// of the same user that share ports, as the API server does with
// --permit-port-sharing; connections never reach it.
type reservation struct {
	fd   int
	port int
}

const (
	portPoll = 50 * time.Millisecond
	// portPatience is how long the API server of a control plane that was killed
	// may still hold the port.
	portPatience = 3 * time.Second
)

// reservePort reserves a TCP port of 127.0.0.1: the one in file, or, if there is
// no such file, one that the system picks, which is then written to file.
func reservePort(file string, clk clock.Clock) (*reservation, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		r, err := bind(0)
		if err != nil {
			return nil, err
		}
		if err := atomicfile.Write(file, []byte(strconv.Itoa(r.port)+"\n")); err != nil {
			r.release()
			return nil, err
		}
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for deadline := clk.Now().Add(portPatience); ; clk.Sleep(portPoll) {
		r, err := bind(int(port))
		if !errors.Is(err, ErrPortInUse) || clk.Now().After(deadline) {
			return r, err
		}
	}
}

func bind(port int) (*reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	r := &reservation{fd: fd}
	// Not SO_REUSEADDR, with which any other process that sets it could listen, too.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		r.release()
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("127.0.0.1:%d: %w by another program", port, ErrPortInUse)
		}
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		r.release()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	if inet, ok := name.(*unix.SockaddrInet4); ok {
		r.port = inet.Port
	}
	return r, nil
}

func (r *reservation) release() { _ = unix.Close(r.fd) }
