package probe_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/probe"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ok" || r.URL.RawQuery != "x=1" || r.Header.Get("A") != "b" {
			http.Error(w, "not well", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	port := int32(number)
	target := probe.Target{
		IP: u.Hostname(), Client: server.Client(),
		Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: port}},
	}
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, freePort, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	unused := intstr.Parse(freePort)
	_ = free.Close()
	get := func(path string, port intstr.IntOrString) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: port, HTTPHeaders: []corev1.HTTPHeader{{Name: "A", Value: "b"}},
		}}
	}
	for name, test := range map[string]struct {
		handler corev1.ProbeHandler
		want    string
	}{
		"http by name":   {get("/ok?x=1", intstr.FromString("health")), ""},
		"http by number": {get("/ok?x=1", intstr.FromInt32(port)), ""},
		"http failing":   {get("/bad", intstr.FromInt32(port)), "HTTP probe answered with status 503: not well"},
		"no such port":   {get("/ok", intstr.FromString("other")), "the container has no port named other"},
		"tcp":            {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}, ""},
		"tcp refused":    {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: unused}}, "refused"},
		"exec":           {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}, ""},
	} {
		err := probe.Check(t.Context(), &corev1.Probe{ProbeHandler: test.handler}, target)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		clk := clock.RealClock{}
		start := clk.Now()
		// Fails while starting, then well, one hiccup, then failing for good.
		answers := []bool{false, false, true, true, false, true, false, false, false, false}
		var got []string
		w := probe.Watcher{
			Probe: &corev1.Probe{InitialDelaySeconds: 3, PeriodSeconds: 10, FailureThreshold: 3},
			Clock: clk,
			Eager: true,
			Check: func(context.Context) error {
				ok := answers[0]
				if answers = answers[1:]; len(answers) == 0 {
					cancel()
				}
				if ok {
					return nil
				}
				return errors.New("no")
			},
			Report: func(err error) {
				got = append(got, clk.Since(start).String()+" "+strconv.FormatBool(err == nil))
			},
		}
		go w.Watch(ctx)
		synctest.Wait()
		<-ctx.Done()
		synctest.Wait()
		if want := []string{"5s true", "1m5s false"}; !slices.Equal(got, want) {
			t.Errorf("reports %v, want %v", got, want)
		}
	})
}
