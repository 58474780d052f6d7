package extauthzproxy

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// hopByHop are the headers that end at Envoy's connection manager; a filter
// does not see them.
func hopByHop() []string {
	return []string{"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}
}

// checkRequest returns Envoy's CheckRequest for r. id is the stream's id, and now is
// when the request began.
func (p *Proxy) checkRequest(r *http.Request, id string, now time.Time) *authv3.CheckRequest {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	fields := filterHeaders(r)
	request := &authv3.AttributeContext_HttpRequest{
		Id: id, Method: r.Method, Path: r.RequestURI, Host: r.Host, Scheme: scheme(r), Protocol: protocol(r),
	}
	if p.config.EncodeRawHeaders {
		request.HeaderMap = rawHeaders(fields)
	} else {
		request.Headers = map[string]string{}
		for key, values := range fields {
			request.Headers[key] = strings.Join(values, ",")
		}
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{
			Address: address(r.RemoteAddr), Principal: peerPrincipal(r.TLS), Service: r.Header.Get("X-Envoy-Downstream-Service-Cluster"),
		},
		Destination:       &authv3.AttributeContext_Peer{Address: address(text(local)), Principal: p.config.Principal},
		Request:           &authv3.AttributeContext_Request{Time: timestamppb.New(now), Http: request},
		ContextExtensions: maps.Clone(p.config.ContextExtensions),
		MetadataContext:   &corev3.Metadata{},
		// A route has none unless it is configured; the field is there anyway.
		RouteMetadataContext: &corev3.Metadata{},
	}}
}

// filterHeaders are the headers as a filter sees them: lower-case, with the
// pseudo headers of HTTP/2 also on HTTP/1.1 and without those of the connection.
func filterHeaders(r *http.Request) map[string][]string {
	fields := map[string][]string{
		":authority": {r.Host}, ":method": {r.Method}, ":path": {r.RequestURI}, ":scheme": {scheme(r)},
		"x-forwarded-proto": {scheme(r)},
	}
	for key, values := range r.Header {
		if key = strings.ToLower(key); !slices.Contains(hopByHop(), key) {
			fields[key] = values
		}
	}
	return fields
}

// rawHeaders is the form that Envoy uses with encode_raw_headers: every value is
// a header of its own.
func rawHeaders(fields map[string][]string) *corev3.HeaderMap {
	out := &corev3.HeaderMap{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		for _, value := range fields[key] {
			out.Headers = append(out.Headers, &corev3.HeaderValue{Key: key, RawValue: []byte(value)})
		}
	}
	return out
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// protocol is Envoy's spelling, which has no minor version from HTTP/2 on.
func protocol(r *http.Request) string {
	if r.ProtoMajor >= 2 {
		return "HTTP/2"
	}
	return r.Proto
}

// peerPrincipal is the first URI of the client's certificate, or its subject.
func peerPrincipal(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	return principal(state.PeerCertificates[0])
}

func principal(cert *x509.Certificate) string {
	if len(cert.URIs) > 0 {
		return cert.URIs[0].String()
	}
	return cert.Subject.String()
}

func text(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	return addr.String()
}

// address returns a socket address, or nil if hostPort is not one.
func address(hostPort string) *corev3.Address {
	parsed, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return nil
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       parsed.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(parsed.Port())},
	}}}
}
