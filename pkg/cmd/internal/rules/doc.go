// Package rules owns what several commands say about the rules of the token exchange: the
// flags that choose the hub or a file, references to objects, and errors with what to do next.
//
// What reads and writes the rules is in pkg/tokenauthorizer/rulestore.
package rules
