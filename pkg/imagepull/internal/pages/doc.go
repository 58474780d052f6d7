// Package pages reads lists of any length from an API server, part by part, and
// never holds more than a few parts of them.
package pages
