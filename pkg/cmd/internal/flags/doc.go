// Package flags owns the groups of flags that several commands have in common
// and turns them into the values of pkg/install. It talks to no cluster.
package flags
