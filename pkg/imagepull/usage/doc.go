// Package usage answers which ServiceAccounts pods run as, or will run as.
//
// It owns what is known of pods and of the workloads that make them: their
// ServiceAccount, and nothing else of them. It writes nothing.
package usage
