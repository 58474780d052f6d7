// Package clocks has the clock of tests that would otherwise wait for hours. It
// owns how such a clock goes on and what it knows of those who wait for it. It
// never decides when a test moves it.
//
// Its invariant: whoever waits for a time is woken when the clock shows it.
package clocks
