package server

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/authorizer"
)

// checkRequest is what we use of an envoy.service.auth.v3.CheckRequest.
type checkRequest struct {
	headers

	id, method, path, principal string
}

// The numbers of the fields that we read; docs/decisions.md says why they are
// here. They are held against Envoy's own definition by TestRequestFields.
const (
	checkAttributes = 1 // CheckRequest

	attributesSource  = 1 // AttributeContext
	attributesRequest = 4

	peerPrincipal = 4 // AttributeContext.Peer

	requestHTTP = 2 // AttributeContext.Request

	httpID        = 1 // AttributeContext.HttpRequest
	httpMethod    = 2
	httpHeaders   = 3
	httpPath      = 4
	httpHeaderMap = 13

	headerMapHeaders = 1 // config.core.v3.HeaderMap

	headerKey      = 1 // An entry of headers, or a config.core.v3.HeaderValue.
	headerValue    = 2
	headerRawValue = 3
)

// errWire is for data that is no protocol buffer.
var errWire = errors.New("the message is not well-formed")

// unmarshal reads the wire format. Fields that we do not use are stepped over.
// It keeps no reference to data.
func (r *checkRequest) unmarshal(data []byte) error {
	return fields(data, func(number protowire.Number, value []byte) error {
		if number == checkAttributes {
			return fields(value, r.attribute)
		}
		return nil
	})
}

func (r *checkRequest) attribute(number protowire.Number, value []byte) error {
	switch number { //nolint:exhaustive // field numbers have no end
	case attributesSource:
		return fields(value, r.source)
	case attributesRequest:
		return fields(value, func(number protowire.Number, value []byte) error {
			if number == requestHTTP {
				return fields(value, r.http)
			}
			return nil
		})
	}
	return nil
}

func (r *checkRequest) source(number protowire.Number, value []byte) error {
	if number == peerPrincipal {
		r.principal = string(value)
	}
	return nil
}

func (r *checkRequest) http(number protowire.Number, value []byte) error {
	switch number { //nolint:exhaustive // field numbers have no end
	case httpID:
		r.id = plain(value)
	case httpMethod:
		r.method = method(value)
	case httpPath:
		r.path = string(value)
	case httpHeaders:
		return r.header(value)
	case httpHeaderMap:
		return fields(value, func(number protowire.Number, value []byte) error {
			if number == headerMapHeaders {
				return r.header(value)
			}
			return nil
		})
	}
	return nil
}

// header reads one header. Envoy fills the value in one form and the raw value
// in the other.
func (r *checkRequest) header(data []byte) error {
	var name, value []byte
	err := fields(data, func(number protowire.Number, field []byte) error {
		switch number { //nolint:exhaustive // field numbers have no end
		case headerKey:
			name = field
		case headerValue, headerRawValue:
			if len(field) > 0 {
				value = field
			}
		}
		return nil
	})
	if err == nil {
		r.add(name, value)
	}
	return err
}

// fields calls visit with every length-delimited field of a message.
func fields(data []byte, visit func(number protowire.Number, value []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
		}
		if err := visit(number, value); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// method returns a request method without an allocation for the usual ones.
func method(value []byte) string {
	for _, known := range [...]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
		if string(value) == known {
			return known
		}
	}
	return string(value)
}

// authorize returns the request in the words of package authorizer.
func (r *checkRequest) authorize() authorizer.Request {
	id := r.requestID
	if id == "" {
		id = r.id
	}
	return authorizer.Request{
		Token: r.token(),
		Origin: authorizer.Origin{
			RequestID: id, Method: r.method, Path: pathOnly(r.path), Principal: r.principal,
		},
	}
}
