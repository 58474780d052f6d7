// Package clocks has the clock of tests that would otherwise wait for hours. It
// owns how such a clock advances and what it knows of its waiters. It
// never decides when a test moves it.
//
// Its invariant: a waiter for a time is woken when the clock shows it.
package clocks
