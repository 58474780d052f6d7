package resident

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Trim gives back what is not in use: of the heap, and of the binary and the
// libraries all pages, of which those that are needed return at their next use
// from the page cache. It costs a garbage collection and some thousand page
// faults and is meant for the moments after a start. An error has changed
// nothing that matters.
func Trim() error {
	debug.FreeOSMemory()
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read the own memory regions: %w", err)
	}
	defer func() { _ = smaps.Close() }()
	regions, err := discardable(smaps)
	if err != nil {
		return fmt.Errorf("read the own memory regions: %w", err)
	}
	for _, r := range regions {
		// The regions are not memory of Go's heap, so there is no slice to give
		// to unix.Madvise.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.from, r.to-r.from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("give back pages: %w", errno)
		}
	}
	return nil
}
