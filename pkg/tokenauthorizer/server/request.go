package server

import (
	"cmp"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
)

// readCheck returns the headers of a CheckRequest and what to authorize. Envoy
// sends headers in one of two forms; a token that is in both counts as two.
func readCheck(r *authv3.CheckRequest) (headers, authorizer.Request) {
	var h headers
	http := r.GetAttributes().GetRequest().GetHttp()
	for name, value := range http.GetHeaders() {
		h.add(name, value)
	}
	for _, header := range http.GetHeaderMap().GetHeaders() {
		h.add(header.GetKey(), cmp.Or(string(header.GetRawValue()), header.GetValue()))
	}
	return h, authorizer.Request{
		Token: h.token(),
		Origin: authorizer.Origin{
			RequestID: cmp.Or(h.requestID, plain(http.GetId())), Method: http.GetMethod(), Path: pathOnly(http.GetPath()),
			Principal: r.GetAttributes().GetSource().GetPrincipal(),
		},
	}
}
