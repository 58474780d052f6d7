// Package measure starts one of our processes for a benchmark and tells what it
// cost: CPU, memory and, by the API server's own record, requests. It knows
// nothing of what the process does.
package measure
