// Package imagepull measures the controllers of image pull secrets: what a burst
// of ServiceAccounts costs them and the API server, what they cost at rest, and
// how renewals spread. `make bench` runs it.
package imagepull
