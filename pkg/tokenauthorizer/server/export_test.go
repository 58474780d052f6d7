package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
)

// Read is what the server takes from a CheckRequest.
type Read struct {
	Request               authorizer.Request
	Authorization, Accept string
	Forbidden             []string
}

// ReadCheckRequest decodes as gRPC does.
func ReadCheckRequest(data []byte) (Read, error) {
	r := &authv3.CheckRequest{}
	if err := proto.Unmarshal(data, r); err != nil {
		return Read{}, err
	}
	h, request := readCheck(r)
	return Read{Request: request, Authorization: h.authorization, Accept: h.accept, Forbidden: h.forbidden}, nil
}

// Unusable is what stands for credentials that are not one token.
const Unusable = unusable

// TokenOf is the token of Authorization headers.
func TokenOf(values ...string) string {
	var h headers
	for _, value := range values {
		h.add("Authorization", value)
	}
	return h.token()
}

// AcceptsForm reports whether a body is a whole token request.
func AcceptsForm(body string) bool {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, TokenPath, strings.NewReader(body)) //nolint:forbidigo // a test's
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, refused := readForm(httptest.NewRecorder(), r)
	return refused == nil
}

// CheckWire answers a CheckRequest, from bytes to bytes.
func (s *Server) CheckWire(ctx context.Context, data []byte) ([]byte, error) {
	request := &authv3.CheckRequest{}
	if err := proto.Unmarshal(data, request); err != nil {
		return nil, err
	}
	response, err := authorization{s}.Check(ctx, request)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}
