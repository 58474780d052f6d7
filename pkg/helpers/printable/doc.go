// Package printable owns which characters of text from other machines reach a terminal. It
// shortens nothing and prints nothing.
package printable
