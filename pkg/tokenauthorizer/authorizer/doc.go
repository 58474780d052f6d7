// Package authorizer is the chain that processes every request: prove the subject
// token, find the rule, review if the cluster requires it, exchange.
//
// It owns the order of these stages, one consistent snapshot of configuration
// per request, and what is reported about each decision (audit, metrics). It knows
// no protocol: package server speaks Envoy's, HTTP and RFC 8693 to it.
package authorizer
