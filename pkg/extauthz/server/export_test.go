package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
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
