// Package excerpt bounds text from outside that goes into a message, a log or a
// status. It judges nothing else about the text: who shows it quotes it.
package excerpt
