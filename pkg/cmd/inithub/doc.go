// Package inithub is the "init" command: it makes a cluster the hub, tests
// whether the hub signs client certificates, and prints the join command.
package inithub
