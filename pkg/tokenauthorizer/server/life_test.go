package server_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestHealth: the state of each service is told by its name, and is what the
// composition says it is.
func TestHealth(t *testing.T) {
	t.Parallel()
	s, stop := begin(t, server.Config{})
	conn := dial(t, "passthrough:///"+s.Addresses().GRPC, nil)
	state := func(service string) string {
		response, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil {
			return status.Code(err).String()
		}
		return response.GetStatus().String()
	}
	expect := func(want string) {
		t.Helper()
		for _, service := range []string{"", server.ServiceName} {
			if got := state(service); got != want {
				t.Errorf("%q: got %s, want %s", service, got, want)
			}
		}
	}
	expect("NOT_SERVING")
	s.SetServing(true)
	expect("SERVING")
	s.SetServing(false)
	expect("NOT_SERVING")
	if got := state("envoy.service.auth.v2.Authorization"); got != codes.NotFound.String() {
		t.Errorf("an unknown service is %s", got)
	}
	if err := s.Check(nil); err != nil {
		t.Error(err)
	}
	stop()
	if err := s.Check(nil); err == nil {
		t.Error("a server that ended is ready")
	}
}

// TestDrainLosesNoRequest: from the moment the end is asked for, health checks
// say so, and every request is answered until the last client has left.
func TestDrainLosesNoRequest(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	var waiting atomic.Bool
	ask := &authority{decide: func(request authorizer.Request) (authorizer.Decision, error) {
		if request.Token == "slow" {
			waiting.Store(true)
			<-slow
		}
		return allowed(), nil
	}}
	s, stop := begin(t, server.Config{Authorizer: ask, Drain: 300 * time.Millisecond})
	s.SetServing(true)
	conn := dial(t, "passthrough:///"+s.Addresses().GRPC, nil)
	check := func(token string) error {
		_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), checkRequest(map[string]string{"authorization": "Bearer " + token}))
		return err
	}
	watching, enough := context.WithCancel(t.Context())
	watch, err := healthv1.NewHealthClient(conn).Watch(watching, &healthv1.HealthCheckRequest{Service: server.ServiceName})
	if err != nil {
		t.Fatal(err)
	}
	defer enough()
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("got %v, %v", first, err)
	}

	var load sync.WaitGroup
	var left atomic.Bool
	var sent atomic.Int64
	for range 4 {
		load.Go(func() {
			for !left.Load() {
				if err := check("a.b.c"); err != nil {
					t.Errorf("lost a request: %v", err)
				}
				sent.Add(1)
			}
		})
		load.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for !left.Load() {
				if err := ask200(t.Context(), client, "http://"+s.Addresses().HTTP+"/authz/"); err != nil {
					t.Errorf("lost a request: %v", err)
				}
			}
		})
	}
	load.Go(func() {
		if err := check("slow"); err != nil {
			t.Errorf("lost the slow request: %v", err)
		}
	})
	for !waiting.Load() || sent.Load() < 100 {
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls, and the load goes on
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	if next, err := watch.Recv(); err != nil || next.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v, %v", next, err)
	}
	left.Store(true) // A proxy that learned it goes elsewhere.
	close(slow)
	load.Wait()
	enough() // The watch would hold the server for its whole grace.
	<-stopped
}

func ask200(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer a.b.c")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return io.ErrUnexpectedEOF
	}
	return response.Body.Close()
}

// TestEndBeforeTheBeginning: a server that is told to end before it serves has no
// fault.
func TestEndBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	for range 100 {
		_, stop := begin(t, server.Config{})
		stop()
	}
}
