// Package server speaks to proxies and clients: Envoy's external authorization
// over gRPC (envoy.service.auth.v3) and over HTTP, which nginx and Traefik ask
// in as well, and token exchange by RFC 8693.
//
// It owns the protocols, the words and headers of every answer, transport
// security and the end of a connection's life. It never looks into a token and
// never decides: it hands over the token as it came and reports the decision.
//
// Invariant: a fault of ours is never reported as a fault of the caller's
// credential, and nothing but an explicit decision to allow is an answer that
// allows.
package server
