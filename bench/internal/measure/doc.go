// Package measure starts one of our processes for a benchmark and measures its CPU
// time, private memory and, from the API server's audit log, requests. It does not
// depend on what the process does.
package measure
