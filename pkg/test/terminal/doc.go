// Package terminal is a pseudo-terminal for tests: what a command writes to it
// can be read, and what a person would type can be typed. It draws nothing.
package terminal
