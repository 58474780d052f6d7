// Package leave owns how a managed cluster leaves its hub: what unjoin does behind its
// flags, with the ManifestWorks that the agent has applied. Every step can be repeated
// after an interruption. It reads no flag and prints nothing.
package leave
