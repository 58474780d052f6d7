// Package rules evaluates the condition rules of ManifestWorks in processes of their own.
// CEL counts what an expression costs and stops it, but only between two steps: one
// call of replace or of a comparison may take any memory and minutes. The author of a work
// must not be able to stop the agent for all others, so the kernel limits the process.
//
// It owns the processes, their limits and their protocol, and what is reported of rules
// that do not keep within the limits. What rules mean is package status.
//
// It never evaluates a rule in the process of the agent.
package rules
