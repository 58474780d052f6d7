package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"google.golang.org/grpc/mem"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
)

// Read is what the server takes from a CheckRequest.
type Read struct {
	ID, Method, Path, Principal string
	RequestID, Accept, Token    string
	Authorization               string
	Forbidden                   []string
}

// ReadCheckRequest decodes as the codec does.
func ReadCheckRequest(data []byte) (Read, error) {
	var r checkRequest
	if err := r.unmarshal(data); err != nil {
		return Read{}, err
	}
	return Read{
		ID: r.id, Method: r.method, Path: r.path, Principal: r.principal,
		RequestID: r.requestID, Accept: r.accept, Token: r.token(), Authorization: r.authorization,
		Forbidden: r.forbidden,
	}, nil
}

// Unusable is what stands for credentials that are not one token.
const Unusable = unusable

// TokenOf is the token of Authorization headers.
func TokenOf(values ...string) string {
	var h headers
	for _, value := range values {
		h.add([]byte("Authorization"), []byte(value))
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
	c := newCodec()
	request := &checkRequest{}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, request); err != nil {
		return nil, err
	}
	made, err := s.check(ctx, request)
	if err != nil {
		return nil, err
	}
	out, err := c.Marshal(made)
	if err != nil {
		return nil, err
	}
	return out[0].ReadOnlyData(), nil
}

// CodecRoundTrip reads a CheckRequest and writes an answer that allows it.
func CodecRoundTrip(data []byte) error {
	c := newCodec()
	request := &checkRequest{}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, request); err != nil {
		return err
	}
	_, err := c.Marshal(allow(&request.headers, &authorizer.Decision{Token: exchange.Token{Value: request.token()}}))
	return err
}
