package extauthz_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// loadVariable holds a load for a copy of this test's binary to make.
const loadVariable = "EXTAUTHZ_LOAD"

// load is what the second process does.
type load struct {
	Address string
	Tokens  []string
	// Connections is how many workers an Envoy has, and Streams how many
	// requests are under way at a time, on all of them.
	Connections, Streams int
	// PerSecond is how many requests are begun; 0 means as many as are answered.
	PerSecond int
	Duration  time.Duration
}

// outcome is what it saw.
type outcome struct {
	Requests, Failed int64
	Seconds          float64
	P50, P99, P999   time.Duration
	// Problem is one of the failures.
	Problem string
}

func (o *outcome) perSecond() float64 { return float64(o.Requests) / o.Seconds }

func TestMain(m *testing.M) {
	if spec := os.Getenv(loadVariable); spec != "" {
		if err := makeLoad(context.Background(), spec); err != nil { //nolint:forbidigo // this is a main
			println(err.Error())
			os.Exit(1) //nolint:forbidigo // as above
		}
		return
	}
	m.Run()
}

// run makes the load in a process of its own.
func (l load) run(b *testing.B) outcome {
	b.Helper()
	spec, err := json.Marshal(l)
	if err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self)
	cmd.Env = append(os.Environ(), loadVariable+"="+string(spec))
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		b.Fatalf("the load: %v", err)
	}
	var o outcome
	if err := json.Unmarshal(data, &o); err != nil {
		b.Fatal(err)
	}
	if o.Failed > 0 {
		b.Fatalf("%d of %d requests failed, such as: %s", o.Failed, o.Requests, o.Problem)
	}
	return o
}

// wire sends and takes bytes: the load should cost little itself.
type wire struct{}

func (wire) Name() string { return "proto" }

func (wire) Marshal(v any) (mem.BufferSlice, error) {
	data, ok := v.([]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

func (wire) Unmarshal(data mem.BufferSlice, v any) error {
	first, ok := v.(*[4]byte)
	if !ok {
		return errors.New("not four bytes")
	}
	data.CopyTo(first[:])
	return nil
}

// worker is one stream of requests.
type worker struct {
	conn     *grpc.ClientConn
	requests [][]byte
	took     []time.Duration
	failed   int64
	problem  error
}

// ask makes one request, which began at begin. An answer that allows has an
// empty status in front.
func (w *worker) ask(ctx context.Context, i int, begin time.Time) {
	var first [4]byte
	err := w.conn.Invoke(ctx, authv3.Authorization_Check_FullMethodName, w.requests[i%len(w.requests)], &first, grpc.ForceCodecV2(wire{}))
	if err == nil && (first[0] != 0x0a || first[1] != 0) {
		err = fmt.Errorf("the answer begins with %x", first)
	}
	if err != nil {
		w.failed, w.problem = w.failed+1, err
	}
	w.took = append(w.took, now.Since(begin))
}

func makeLoad(ctx context.Context, spec string) error {
	var l load
	if err := json.Unmarshal([]byte(spec), &l); err != nil {
		return err
	}
	workers, err := l.workers()
	if err != nil {
		return err
	}
	begin := now.Now()
	var all sync.WaitGroup
	var next atomic.Int64
	for i, w := range workers {
		all.Go(func() { l.stream(ctx, w, i, begin, &next) })
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(summary(workers, now.Since(begin)))
}

// stream makes the requests of one worker. With a rate, requests are dated by
// when they were due: one that had to wait was slow.
func (l *load) stream(ctx context.Context, w *worker, i int, begin time.Time, next *atomic.Int64) {
	for {
		if l.PerSecond == 0 {
			at := now.Now()
			if at.Sub(begin) >= l.Duration {
				return
			}
			w.ask(ctx, i+len(w.took), at)
			continue
		}
		n := next.Add(1)
		due := begin.Add(time.Duration(n) * time.Second / time.Duration(l.PerSecond))
		if due.Sub(begin) >= l.Duration {
			return
		}
		now.Sleep(due.Sub(now.Now()))
		// A sleep is late by itself; that is not the authorizer's time.
		w.ask(ctx, int(n), latest(due, now.Now()))
	}
}

// latest is when a request began: when it was due, unless its worker had slept
// past that for less than a timer's inaccuracy.
func latest(due, woke time.Time) time.Time {
	if woke.Sub(due) < 2*time.Millisecond {
		return woke
	}
	return due
}

func (l *load) workers() ([]*worker, error) {
	requests := make([][]byte, len(l.Tokens))
	for i, token := range l.Tokens {
		data, err := proto.Marshal(checkRequest(token))
		if err != nil {
			return nil, err
		}
		requests[i] = data
	}
	conns := make([]*grpc.ClientConn, l.Connections)
	for i := range conns {
		conn, err := grpc.NewClient("passthrough:///"+l.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		conns[i] = conn
	}
	workers := make([]*worker, l.Streams)
	for i := range workers {
		workers[i] = &worker{conn: conns[i%len(conns)], requests: requests}
	}
	return workers, nil
}

func summary(workers []*worker, took time.Duration) outcome {
	o := outcome{Seconds: took.Seconds()}
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.took...)
		o.Failed += w.failed
		if w.problem != nil {
			o.Problem = w.problem.Error()
		}
	}
	slices.Sort(all)
	if o.Requests = int64(len(all)); o.Requests > 0 {
		at := func(share float64) time.Duration { return all[min(len(all)-1, int(share*float64(len(all))))] }
		o.P50, o.P99, o.P999 = at(0.5), at(0.99), at(0.999)
	}
	return o
}

// checkRequest is what Envoy sends for a request of a client of Kubernetes.
func checkRequest(token string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:      &authv3.AttributeContext_Peer{Principal: "spiffe://mesh/ns/app/sa/reader"},
		Destination: &authv3.AttributeContext_Peer{Principal: "spiffe://mesh/ns/gateway/sa/envoy"},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Id: "11544513240986426381", Method: "GET", Path: "/api/v1/namespaces/team/secrets/db?timeout=10s",
			Host: "hub.example.com", Scheme: "https", Protocol: "HTTP/2",
			Headers: map[string]string{
				":authority": "hub.example.com", ":method": "GET", ":path": "/api/v1/namespaces/team/secrets/db?timeout=10s", ":scheme": "https",
				"accept": "application/json, */*", "accept-encoding": "gzip", "authorization": "Bearer " + token,
				"user-agent": "external-secrets/v0.9 (linux/amd64)", "x-forwarded-for": "10.0.0.7", "x-forwarded-proto": "https",
				"x-request-id": "9a2c6f0e-5e06-4f3e-9a1b-62b9f6a4d0a1",
			},
		}},
	}}
}
