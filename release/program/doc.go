// Package program describes built programs by what the Go toolchain wrote into them.
// It never runs them, and never asks git or a clock.
package program
