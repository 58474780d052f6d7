// Package check is the "check" command: it looks at a hub, a managed cluster or
// one cluster on the hub, step by step in the order in which things have to
// work, and says of each step whether it does, why not and what to do.
//
// It repairs nothing. Its only write is the hub's self-test.
package check
