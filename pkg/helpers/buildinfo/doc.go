// Package buildinfo tells which release this binary is and which image belongs
// to it. It reads nothing but what the Go toolchain put into the binary.
package buildinfo
