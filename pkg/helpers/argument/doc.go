// Package argument writes lists and pairs as values of command-line flags, so that pflag
// reads what was written, with commas, quotes and equals signs in it.
//
// It knows no flag.
package argument
