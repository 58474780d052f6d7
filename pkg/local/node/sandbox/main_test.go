package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// The test binary is its own helper: the variable says which part it plays.
const role = "SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "enter" {
		// Nobody can tell which thread Enter is called on: here it is not the
		// first one, which the kernel knows most about.
		runtime.LockOSThread()
		done := make(chan error)
		go func() { done <- sandbox.Enter() }()
		fmt.Fprintln(os.Stderr, <-done)
		os.Exit(1)
	}
	switch os.Getenv(role) {
	case "show":
		show()
	case "wait":
		fmt.Println("waiting")
		select {} // until it is killed
	case "parent":
		parent()
	default:
		goleak.VerifyTestMain(m)
	}
}

// show prints what a container sees.
func show() {
	host, _ := os.Hostname()
	data, _ := os.ReadFile("/volume/deep/file")
	_, homeErr := os.Stat("/home")
	rootErr := os.WriteFile("/new", nil, 0o600)
	readOnlyErr := os.WriteFile("/etc/ro/new", nil, 0o600)
	writableErr := os.WriteFile("/volume/deep/new", nil, 0o600)
	_, passwdErr := os.Stat("/etc/passwd")
	status, _ := os.ReadFile("/proc/self/status")
	caps := ""
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff") {
			caps = strings.Fields(line)[1]
		}
	}
	fmt.Printf("pid=%d host=%s argv0=%s args=%v file=%s caps=%s\n", os.Getpid(), host, os.Args[0], os.Args[1:], data, caps)
	fmt.Printf("home=%t rootfs=%t readonly=%t writable=%t passwd=%t\n",
		errors.Is(homeErr, os.ErrNotExist), errors.Is(rootErr, syscall.EROFS), errors.Is(readOnlyErr, syscall.EROFS),
		writableErr == nil, passwdErr == nil)
	syscall.Exit(3) // past the coverage report of the test binary
}

// parent starts a container that waits and tells its process id.
func parent() {
	group := process.NewGroup()
	self, _ := os.Executable()
	p, err := sandbox.Launcher{Group: group, Self: []string{self, "enter"}}.Start(sandbox.Spec{
		Root: os.Args[1], Hostname: "pod", Binary: self, Env: []string{role + "=wait"},
	}, os.Stderr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	<-p.Done()
	group.Close()
}
