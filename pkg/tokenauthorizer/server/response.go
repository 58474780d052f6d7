package server

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// checkResponse returns the answer as Envoy reads it.
func (a *answer) checkResponse() *authv3.CheckResponse {
	out := &authv3.CheckResponse{Status: &rpcstatus.Status{Code: int32(a.code)}, DynamicMetadata: a.dynamicMetadata()} //nolint:gosec // codes are few
	if a.code == codes.OK {
		out.HttpResponse = &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: a.headerOptions(), HeadersToRemove: a.remove,
		}}
		return out
	}
	denied := &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(a.status)}, //nolint:gosec // a status has three digits
		Headers: a.headerOptions(), Body: a.body,
	}
	out.HttpResponse = &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied}
	if a.status == http.StatusServiceUnavailable {
		out.HttpResponse = &authv3.CheckResponse_ErrorResponse{ErrorResponse: denied}
	}
	return out
}

// headerOptions overwrite what the request has. Envoys that do not know the
// action overwrite as well.
func (a *answer) headerOptions() []*corev3.HeaderValueOption {
	out := make([]*corev3.HeaderValueOption, len(a.headers))
	for i, h := range a.headers {
		out[i] = &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: h.name, Value: h.value},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}
	}
	return out
}

func (a *answer) dynamicMetadata() *structpb.Struct {
	if len(a.metadata) == 0 {
		return nil
	}
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(a.metadata))}
	for _, entry := range a.metadata {
		out.Fields[entry.name] = structpb.NewStringValue(entry.value)
	}
	return out
}
