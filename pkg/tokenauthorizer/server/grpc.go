package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// ServiceName is the gRPC service that Envoy calls, and the name under which
// grpc.health.v1 reports its state.
const ServiceName = "envoy.service.auth.v3.Authorization"

// Limits of gRPC connections. Envoy keeps one for each of its workers.
const (
	maxMessage  = 1 << 20
	maxMetadata = 16 << 10
	maxStreams  = 1000
	// streamWorkers keep their stacks, which a goroutine per request would have
	// to grow again: a sixth of the CPU time of a warm check. More requests than
	// these get goroutines of their own.
	streamWorkers     = 64
	connectionTimeout = 10 * time.Second
	// maxConnectionAge has proxies dial again now and then, so that they meet
	// new replicas, and certificates that were renewed.
	maxConnectionAge   = time.Hour
	maxConnectionGrace = time.Minute
	keepaliveTime      = 30 * time.Second
	keepaliveTimeout   = 10 * time.Second
	minPing            = 10 * time.Second
)

// newGRPC returns the gRPC server with its services.
func (s *Server) newGRPC() *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxMetadata),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.SharedWriteBuffer(true),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: maxConnectionGrace,
			Time: keepaliveTime, Timeout: keepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.recoverUnary),
		grpc.StreamInterceptor(s.recoverStream),
	}
	if s.certificates != nil {
		options = append(options, grpc.Creds(newTransport(s.certificates)))
	}
	server := grpc.NewServer(options...)
	authv3.RegisterAuthorizationServer(server, authorization{s})
	healthv1.RegisterHealthServer(server, s.health)
	return server
}

// authorization is the handler of ServiceName.
type authorization struct {
	server *Server
}

// Check implements authv3.AuthorizationServer. An error is a fault of ours, which
// Envoy counts as such and treats by its failure_mode_allow and status_on_error.
func (a authorization) Check(ctx context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	h, request := readCheck(r)
	answers := a.server.config.Answers
	decision, denied := a.server.decide(ctx, request)
	if denied == nil {
		return allow(&h, &decision).checkResponse(), nil
	}
	if denied.Reason.Class() == denial.Unavailable && !answers.ErrorResponse {
		return nil, status.Error(codes.Unavailable, message(denied.Reason)+": "+string(denied.Reason))
	}
	return answers.deny(&h, request.Origin.RequestID, &decision, denied).checkResponse(), nil
}

// decide asks the authorizer, which records every request, also those that
// carry no token that it could allow.
func (s *Server) decide(ctx context.Context, request authorizer.Request) (authorizer.Decision, *denial.Error) {
	decision, err := s.config.Authorizer.Authorize(ctx, request)
	switch {
	case err != nil:
		return decision, denial.Of(err)
	case request.Token == "":
		return authorizer.Decision{}, denial.New(denial.MissingToken, "the request has no bearer token")
	case request.Token == unusable:
		return authorizer.Decision{}, denial.New(denial.Malformed, "the request has more than one credential")
	case decision.Token.Value == "":
		return authorizer.Decision{}, denial.New(denial.HubUnavailable, "the decision has no token")
	}
	return decision, nil
}

func (s *Server) recoverUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.recovered(cause)
		}
	}()
	return handler(ctx, request)
}

func (s *Server) recoverStream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.recovered(cause)
		}
	}()
	return handler(server, stream)
}

// recovered keeps one request that found a mistake of ours from ending all others.
func (s *Server) recovered(cause any) error {
	s.config.Log.Error(fmt.Errorf("panic: %v", cause), "Failing a request", "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "the authorizer met a fault of its own")
}

// SetServing reports whether requests are answered from a loaded configuration;
// until then, and once the server drains, health checks learn NOT_SERVING.
func (s *Server) SetServing(serving bool) { //nolint:revive // it is the state, not a way to go
	state := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		state = healthv1.HealthCheckResponse_SERVING
	}
	for _, name := range []string{"", ServiceName} {
		s.health.SetServingStatus(name, state)
	}
}
