// Package fleet owns what several commands know about hubs and managed
// clusters: distinguishing one from the other, completing cluster names, checking the
// requests of joining clusters and building join commands.
//
// It prints nothing and reads no flag.
package fleet
