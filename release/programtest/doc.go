// Package programtest builds a small program for tests, from a commit of its own.
package programtest
