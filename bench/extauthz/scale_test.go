package extauthz_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/growth"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const (
	// asking is how many tokens are asked with, and at most how many clusters they are of.
	asking, origins = 3200, 16
	// changes is how many clusters change their keys one after another.
	changes = 20
)

// BenchmarkScaleExtAuthz tabulates what a token authorizer of a hub costs with ever more
// clusters that publish keys and have rules: to start, to write the conditions of each, at
// rest for a minute, for a token that was never seen and for one that was, and for a cluster
// that changes its keys.
func BenchmarkScaleExtAuthz(b *testing.B) {
	var table growth.Table
	for _, clusters := range growth.Sizes(b, 1, 1000, 10000) {
		b.Run(strconv.Itoa(clusters)+"-clusters", func(b *testing.B) {
			add := func(name string, cost float64) { b.Helper(); table.Add(b, clusters, name, cost) }
			scale(b, clusters, add)
			b.ReportMetric(0, "ns/op")
		})
	}
	table.Print(b)
}

func scale(b *testing.B, clusters int, add func(string, float64)) {
	b.Helper()
	cp := controlplane.Start(b)
	busy := min(clusters, origins)
	tokens := populate(b, cp, clusters, busy, asking/busy)
	address := "127.0.0.1:" + measure.FreePort(b)
	start := now.Now()
	process := measure.Launch(b, binary, "extauthz", mintingHub(b, cp), "--from-hub", "--addr=127.0.0.1", "--port="+address[len("127.0.0.1:"):])
	process.AwaitReady(b)
	add("start-wall-s", now.Since(start).Seconds())
	add("start-cpu-s", process.CPU(b).Seconds())
	add("start-private-MiB", float64(process.PeakKiB(b))/1024)

	spent := func(name string, n int64, do func()) {
		b.Helper()
		before := process.CPU(b)
		do()
		add(name, float64((process.CPU(b)-before).Microseconds())/float64(n))
	}
	// What is left of the start does not count as rest.
	spent("conditions-cpu-us", int64(clusters), func() { awaitConditions(b, cp.Client(b)) })
	now.Sleep(5 * time.Second)
	spent("rest-cpu-us", 1, func() { now.Sleep(time.Minute) })
	add("rest-private-MiB", float64(process.PrivateKiB(b))/1024)
	spent("cold-cpu-us", asking, func() { flood(b, address, tokens) })
	l := load{Address: address, Tokens: tokens[:workloads], Connections: 2, Streams: 64, Duration: duration}
	before := process.CPU(b)
	warm := l.run(b)
	add("warm-cpu-us", float64((process.CPU(b)-before).Microseconds())/float64(warm.Requests))
	spent("change-cpu-us", changes, func() { rotate(b, cp.Client(b), clusters) })
	add("private-MiB", float64(process.PeakKiB(b))/1024)
}

// awaitConditions waits until every policy has conditions.
func awaitConditions(b *testing.B, admin client.Client) {
	b.Helper()
	for {
		var policies v1alpha1.TokenExchangePolicyList
		if err := admin.List(b.Context(), &policies); err != nil {
			b.Fatal(err)
		}
		if !slices.ContainsFunc(policies.Items, func(p v1alpha1.TokenExchangePolicy) bool { return len(p.Status.Conditions) == 0 }) {
			return
		}
		now.Sleep(2 * time.Second)
	}
}

// rotate has clusters publish other keys, one a second.
func rotate(b *testing.B, admin client.Client, clusters int) {
	b.Helper()
	for i := range changes {
		if err := publish(b.Context(), b, admin, fleet.Name(i%clusters)); err != nil {
			b.Fatal(err)
		}
		now.Sleep(time.Second)
	}
}

func publish(ctx context.Context, b *testing.B, admin client.Client, name string) error {
	b.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := admin.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return err
	}
	return admin.Update(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.IssuerConfigMap},
		Data: issuer.Published(b, "https://"+name+".example.com", name, string(cluster.UID),
			issuer.NewKey(b, "ES256"), issuer.NewKey(b, "ES256")),
	})
}
