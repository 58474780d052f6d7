// Package fleet owns what several commands know about hubs and managed
// clusters: distinguishing one from the other, completing cluster names, checking the
// requests of joining clusters, the flags that choose an agent, and join commands.
//
// It never accepts, denies or removes a cluster.
package fleet
