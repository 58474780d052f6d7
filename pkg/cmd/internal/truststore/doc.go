// Package truststore edits the token authorizer's configuration for commands:
// a local file, or the ConfigMap on the hub.
//
// It owns the reading, changing and writing of that document as one step. What
// it holds means what package config says. Its invariants: a document that does
// not load is never written; nothing is written when nothing has changed; a
// change that somebody else made meanwhile is not lost; comments stay.
package truststore
