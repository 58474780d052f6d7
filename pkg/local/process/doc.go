// Package process starts the operating system processes of local clusters and
// owns them until they end.
//
// Its invariant: a process started here never outlives the one that started
// it, not even when that is killed with SIGKILL. The kernel is asked to kill
// the child when the thread that forked it ends, so every child of a Group is
// forked by one thread that lives as long as the Group. Linux only.
//
// It restarts nothing: its callers decide that.
package process
