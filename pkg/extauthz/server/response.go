package server

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields that we write, held against Envoy's own definition
// by TestAnswersAreEnvoys.
const (
	responseStatus   = 1 // CheckResponse
	responseDenied   = 2
	responseOK       = 3
	responseMetadata = 4
	responseError    = 5

	statusCode = 1 // google.rpc.Status

	deniedStatus  = 1 // DeniedHttpResponse
	deniedHeaders = 2
	deniedBody    = 3

	httpStatusCode = 1 // type.v3.HttpStatus

	okHeaders         = 2 // OkHttpResponse
	okHeadersToRemove = 5

	optionHeader = 1 // config.core.v3.HeaderValueOption
	optionAction = 3

	// overwriteOrAdd is OVERWRITE_IF_EXISTS_OR_ADD. Envoys that do not know the
	// field overwrite as well.
	overwriteOrAdd = 2

	structFields = 1 // google.protobuf.Struct

	valueString = 3 // google.protobuf.Value
)

// size is a guess at the length of an encoded answer, for one allocation.
func (a *answer) size() int {
	n := 512 + len(a.body)
	for _, h := range a.headers {
		n += len(h.name) + len(h.value)
	}
	return n
}

// marshal appends a as an envoy.service.auth.v3.CheckResponse.
func (a *answer) marshal(b []byte) []byte {
	b, status := begin(b, responseStatus)
	if a.code != codes.OK {
		b = protowire.AppendTag(b, statusCode, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(a.code))
	}
	b = end(b, status)
	switch {
	case a.code == codes.OK:
		b = a.marshalOK(b)
	case a.status == http.StatusServiceUnavailable:
		b = a.marshalDenied(b, responseError)
	default:
		b = a.marshalDenied(b, responseDenied)
	}
	if len(a.metadata) == 0 {
		return b
	}
	b, metadata := begin(b, responseMetadata)
	for _, entry := range a.metadata {
		b = marshalEntry(b, entry)
	}
	return end(b, metadata)
}

func (a *answer) marshalOK(b []byte) []byte {
	b, ok := begin(b, responseOK)
	for _, h := range a.headers {
		b = marshalHeader(b, okHeaders, h)
	}
	for _, name := range a.remove {
		b = appendString(b, okHeadersToRemove, name)
	}
	return end(b, ok)
}

func (a *answer) marshalDenied(b []byte, field protowire.Number) []byte {
	b, denied := begin(b, field)
	b, status := begin(b, deniedStatus)
	b = protowire.AppendTag(b, httpStatusCode, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(a.status)) //nolint:gosec // a status has three digits
	b = end(b, status)
	for _, h := range a.headers {
		b = marshalHeader(b, deniedHeaders, h)
	}
	b = appendString(b, deniedBody, a.body)
	return end(b, denied)
}

func marshalHeader(b []byte, field protowire.Number, h pair) []byte {
	b, option := begin(b, field)
	b, header := begin(b, optionHeader)
	b = appendString(b, headerKey, h.name)
	b = protowire.AppendTag(b, headerValue, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(h.prefix)+len(h.value)))
	b = append(append(b, h.prefix...), h.value...)
	b = end(b, header)
	b = protowire.AppendTag(b, optionAction, protowire.VarintType)
	b = protowire.AppendVarint(b, overwriteOrAdd)
	return end(b, option)
}

func marshalEntry(b []byte, entry pair) []byte {
	b, field := begin(b, structFields)
	b = appendString(b, headerKey, entry.name) // Every map's key is field 1.
	b, value := begin(b, headerValue)          // Every map's value is field 2.
	b = appendString(b, valueString, entry.value)
	b = end(b, value)
	return end(b, field)
}

func appendString(b []byte, field protowire.Number, value string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, value)
}

// begin appends the tag of a message, whose content follows until end is called
// with the returned position.
func begin(b []byte, field protowire.Number) (out []byte, start int) {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return b, len(b)
}

// end puts the length of the message that began at start in front of it.
func end(b []byte, start int) []byte {
	size := len(b) - start
	for range protowire.SizeVarint(uint64(size)) { //nolint:gosec // a length is not negative
		b = append(b, 0)
	}
	copy(b[len(b)-size:], b[start:start+size])
	protowire.AppendVarint(b[:start], uint64(size)) //nolint:gosec // as above
	return b
}
