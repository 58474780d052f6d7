// Package extauthzproxy is a reverse proxy that asks an external authorizer
// about every request over gRPC, as Envoy does with its HTTP filter
// envoy.filters.http.ext_authz: the same CheckRequest, the same deadline, the
// same way of applying each of the three answers and of treating an error.
//
// It stands in for Envoy in tests, because no package registry that we build
// from has an Envoy binary. It routes to one upstream and implements nothing of
// Envoy but what an authorizer can see; request bodies are never sent to it.
//
// Its invariant: what Envoy does where that surprises (an answer whose append
// action is not set adds a second header; a failed call is answered with 403
// unless configured otherwise; headers are removed after others were set) is done
// here as well, so that an authorizer that works here works there.
package extauthzproxy
