package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// Spec is a container to run.
type Spec struct {
	// Root is an empty directory that the new root is mounted over. It can be
	// shared by containers.
	Root string
	// Hostname of the container.
	Hostname string
	// Binary is the executable on the host; inside it is BinaryPath.
	Binary string
	// Args are the arguments without argv[0].
	Args []string
	// Env is the whole environment.
	Env []string
	// WorkingDir is a path inside the container; "" is "/".
	WorkingDir string
	// ReadOnlyRoot mounts the root read-only; volumes keep their own mode.
	ReadOnlyRoot bool
	// Mounts are the volumes.
	Mounts []Mount
}

// Mount is a directory of the host at an absolute path of the container.
type Mount struct {
	Source   string
	Path     string
	ReadOnly bool
}

// BinaryPath is where the container sees its executable: in the root directory,
// as in an image that holds nothing else.
func (s Spec) BinaryPath() string { return "/" + filepath.Base(s.Binary) }

// Errors of Start.
var (
	// ErrNamespaces says that the system does not let this user make
	// namespaces.
	ErrNamespaces = errors.New("the system refuses user namespaces")
	// ErrSetUp says that the container could not be built or its executable
	// could not be run.
	ErrSetUp = errors.New("the container could not be started")
)

// Capabilities inside the new user namespace that Enter needs. A user that is
// not root keeps them over the exec only if they are ambient.
const (
	capSetPCap  = 8
	capSysAdmin = 21
)

// File descriptors of Enter.
const (
	specFD  = 3
	errorFD = 4
)

// Launcher starts containers.
type Launcher struct {
	// Group owns the processes.
	Group *process.Group
	// Self is the command line that calls Enter: argv[0] is an executable.
	Self []string
}

// Start starts a container that writes its output to out, and returns when its
// executable runs. The error wraps ErrNamespaces or ErrSetUp.
func (l Launcher) Start(spec Spec, out *os.File) (*process.Process, error) {
	specIn, specOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = specOut.Close() }()
	errorIn, errorOut, err := os.Pipe()
	if err != nil {
		_ = specIn.Close()
		return nil, err
	}
	defer func() { _ = errorIn.Close() }()
	spec, env := withCoverage(spec)
	p, err := l.Group.Start(&exec.Cmd{
		Path: l.Self[0], Args: l.Self, Dir: "/",
		Env:    append([]string{}, env...), // Nothing is inherited.
		Stdout: out, Stderr: out,
		ExtraFiles:  []*os.File{specIn, errorOut},
		SysProcAttr: attributes(),
	})
	_ = specIn.Close()
	_ = errorOut.Close()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNamespaces, err)
	}
	err = json.NewEncoder(specOut).Encode(spec)
	// Enter ends at the end of the pipe, with an error or as the container.
	_ = specOut.Close()
	message, readErr := io.ReadAll(errorIn)
	if err = errors.Join(err, readErr); err == nil && len(message) == 0 {
		return p, nil
	}
	p.Kill()
	return nil, errors.Join(fmt.Errorf("%w: %s", ErrSetUp, message), err)
}

func attributes() *syscall.SysProcAttr {
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
			unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{capSetPCap, capSysAdmin},
		Setsid:      true,
	}
}
