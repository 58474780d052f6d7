package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// role says what the test binary does as a process that is started.
const role = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "exit":
		fmt.Println(os.Getenv("WORD"), os.Args[1:])
		os.Exit(5)
	case "polite":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println("ready")
		<-terminated
		os.Exit(6)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		clock.RealClock{}.Sleep(time.Hour) // Without a timer, the runtime would call it a deadlock.
	case "parent":
		parent()
	}
}

// parent starts a stubborn child, tells its process id and waits.
func parent() {
	group := process.NewGroup()
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	child, err := group.Start(&exec.Cmd{Path: self, Args: []string{self}, Env: []string{role + "=stubborn"}})
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(child.PID())
	select {}
}
