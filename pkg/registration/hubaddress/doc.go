// Package hubaddress owns the address at which managed clusters reach a hub, and what they
// pin: it finds the address, and probes it as a cluster would that joins.
//
// It prints nothing, writes nothing and sends no credential to the address.
package hubaddress
