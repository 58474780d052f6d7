package rules

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// limitMemory has the kernel refuse the process more memory than it has now and memory.
func limitMemory() error {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(data), "\nVmData:")
	var used uint64
	if _, err := fmt.Sscanf(after, "%d kB", &used); err != nil {
		return fmt.Errorf("read VmData in /proc/self/status: %w", err)
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: used<<10 + memory, Max: used<<10 + memory})
}

// crashOnTimeUp ends the process, as a lack of memory does, when it has used the CPU time
// that limitTime gave it. Left alone, a Go program ignores the kernel's signal.
func crashOnTimeUp() {
	up := make(chan os.Signal, 1)
	signal.Notify(up, unix.SIGXCPU)
	go func() {
		<-up
		panic("the CPU time is used up")
	}()
}

// limitTime gives the process cpuTime more, to half a second: the kernel counts whole
// ones.
func limitTime() error {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	end := uint64((used + cpuTime).Round(time.Second) / time.Second) //nolint:gosec // It is positive.
	return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: end, Max: unix.RLIM_INFINITY})
}
