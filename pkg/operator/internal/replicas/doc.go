// Package replicas decides how many pods a component gets: three where a lost
// control plane node must not stop it, one elsewhere.
//
// See docs/reference/wire-contract.md#replicas.
package replicas
