// Package labelindex lets a cache find objects by the value of a label. Without an
// index, a cache evaluates a label selector against all its objects, so one query per
// cluster would take time with the square of their number.
package labelindex
