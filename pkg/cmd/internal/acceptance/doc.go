// Package acceptance owns the decision which request of a joining cluster is
// granted, and carries it out. The decision is pure; it never accepts a name
// that two requesters or two keys claim until one of them was chosen.
package acceptance
