// Package bench measures the budgets of docs/contributing/benchmarks.md. It
// holds no code of the product: its benchmarks drive the built binaries and real
// API servers, and report counts, bytes and CPU seconds rather than bare wall
// time.
//
// Run it with make bench; every figure is printed in Go's benchmark format, so
// that benchstat can compare two runs.
package bench
