// Package interrupt watches what a client writes, and cuts it off in the middle.
//
// It owns the transport between a client under test and a real API server: it
// notes every write, and after the n-th one about a subject it lets no write
// through any more, as if the process had been killed with its last answer on
// the way. It never changes a request, and never invents an answer.
//
// Its invariant: the server made the write that a client is cut off after, unless it
// could not be reached.
package interrupt
