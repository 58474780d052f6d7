// Package excerpt bounds text from outside that goes into a message, a log or a
// status. It checks nothing else about the text: its users quote it.
package excerpt
