// Package cachereads records what controllers read from their cache, so that a test
// shows what does not scale: a list of all objects of a kind for the sake of one of them,
// and a look at objects that a change does not concern. Both cost nothing noticeable with
// three clusters, and the square of their number with ten thousand.
package cachereads
