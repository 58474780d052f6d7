// Package buildinfo has the release and the image of this binary. It reads only what
// the Go toolchain writes into the binary.
package buildinfo
