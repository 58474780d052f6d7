//go:build !linux

package resident

import "runtime/debug"

// Trim gives back what of the heap is not in use.
func Trim() error {
	debug.FreeOSMemory()
	return nil
}
