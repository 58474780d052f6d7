// Package excerpt bounds text and lists from outside that go into a message, a log or a
// status. It checks nothing else about the text: its users quote it.
package excerpt
