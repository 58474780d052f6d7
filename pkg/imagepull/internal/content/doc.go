// Package content is the content of a pull secret: what is written into it, and
// what is known of it afterwards.
//
// It owns the format of the data and its Summary, which replaces the data in
// caches. It decides nothing about renewal.
//
// Its invariant: no token leaves this package but into the data of a Secret, so
// that neither a cache nor a log ever holds one.
package content
