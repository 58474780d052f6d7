// Package exchangetest owns the test of a token exchange: it requests a token of a workload on
// its managed cluster, exchanges the token with the token authorizer's chain or a running token
// authorizer, and asks the hub for the user of the issued token.
//
// Each step is recorded; none follows one that failed. The package stores and prints no
// token, and it never sends one to the managed cluster.
package exchangetest
