// Package archive writes archives whose bytes depend on nothing but the content: the
// order, the owner and the date of every entry are the same each time.
package archive
