package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// agentPolicy has the API servers record everything that the registration agent
// of cluster1 asks of them, and no more.
const agentPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:open-cluster-management:cluster1"]
- level: Metadata
  users: ["system:serviceaccount:open-cluster-management-agent:klusterlet-registration-sa"]
- level: None
`

// BenchmarkAddOns measures what token add-ons cost the agent of their cluster:
// 100 that are there at once, their refresh, a minute of rest, and 400 more.
// Hub and agent run as init and join set them up, on the same machine.
func BenchmarkAddOns(b *testing.B) {
	var f addOnFleet
	f.begin(b)
	f.report(b, "bare", func() {})
	f.report(b, "100", func() { f.create(b, 0, 100) })
	now.Sleep(2 * time.Second) // Tokens tell seconds only.
	tokens := f.tokens(b, 100)
	f.report(b, "refresh", func() { f.rotate(b, tokens) })
	f.report(b, "rest", func() { now.Sleep(time.Minute) })
	f.report(b, "500", func() { f.create(b, 100, 500) })
	b.ReportMetric(0, "ns/op")
}

// addOnFleet is a hub and one managed cluster.
type addOnFleet struct {
	fleet
	hub, managed client.WithWatch
	agent        *measure.Process
}

func (f *addOnFleet) begin(b *testing.B) {
	b.Helper()
	policy := filepath.Join(b.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(agentPolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	f.start(b, 1, "--apiserver-arg", "--audit-policy-file="+policy, "--apiserver-arg", "--audit-log-path=audit.log")
	f.run(b, "init", "--context", "hub", "--wait")
	f.run(b, "join", "--hub-context", "hub", "--context", "cluster1", "--cluster-name", "cluster1",
		"--addon-kubeclient-registration-auth", "token", "--wait")
	f.hub, f.managed = f.client(b, "hub"), f.client(b, "cluster1")
	f.agent = measure.Attach(b, f.processID(b, "controller", "agent"))
	now.Sleep(10 * time.Second) // What follows a join is no part of it.
}

func (f *addOnFleet) client(b *testing.B, cluster string) client.WithWatch {
	b.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// report measures what the agent does while, and shortly after, something is done.
func (f *addOnFleet) report(b *testing.B, what string, do func()) {
	b.Helper()
	began, cpu := now.Now(), f.agent.CPU(b)
	do()
	wall := now.Since(began)
	cpu = f.agent.CPU(b) - cpu
	now.Sleep(3 * time.Second) // Calls that come late count as well.
	calls := map[string]int{}
	counts := map[string]int{"reads": 0, "writes": 0, "token-requests": 0, "events": 0}
	for _, cluster := range []string{"hub", "cluster1"} {
		for _, e := range f.calls(b, cluster, began) {
			ref := e.ObjectRef
			if ref.Resource == "leases" {
				continue // of the cluster, and of leader election
			}
			path := strings.Trim(ref.Resource+"/"+ref.Subresource, "/")
			if path == "" {
				path = e.RequestURI
			}
			calls[fmt.Sprintf("%s %s %s %d", cluster, e.Verb, path, e.ResponseStatus.Code)]++
			counts[e.kind()]++
		}
	}
	lines := []string{fmt.Sprintf("%s: private memory %d KiB", what, f.agent.PrivateKiB(b))}
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		lines = append(lines, fmt.Sprintf("%6d %s", calls[call], call))
	}
	b.Log(strings.Join(lines, "\n"))
	b.ReportMetric(wall.Seconds(), what+"-wall-s")
	b.ReportMetric(cpu.Seconds(), what+"-cpu-s")
	b.ReportMetric(float64(f.agent.PeakKiB(b))/1024, what+"-private-MiB")
	for kind, n := range counts {
		b.ReportMetric(float64(n), what+"-"+kind)
	}
}

// kind says what a call costs: writes are those that change what is there to stay.
func (e auditEvent) kind() string {
	switch {
	case e.Verb == "get" || e.Verb == "list" || e.Verb == "watch":
		return "reads"
	case e.ObjectRef.Subresource == "token":
		return "token-requests"
	case e.ObjectRef.Resource == "events":
		return "events"
	}
	return "writes"
}

func (f *addOnFleet) calls(b *testing.B, cluster string, since time.Time) []auditEvent {
	b.Helper()
	log, err := os.Open(filepath.Join(f.dir, "clusters", cluster, "control-plane", "audit.log"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	var calls []auditEvent
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.StageTimestamp.After(since) {
			calls = append(calls, event)
		}
	}
	return calls
}

// create makes add-ons as their hub sides do, and waits for all their tokens.
func (f *addOnFleet) create(b *testing.B, from, to int) {
	b.Helper()
	done := f.await(b, from, to, func(secret *corev1.Secret) bool { return len(secret.Data[names.KeyToken]) > 0 })
	forEach(b, from, to, func(ctx context.Context, i int) error {
		addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: addOnName(i)}}
		if err := f.hub.Create(ctx, addOn); err != nil {
			return err
		}
		patch := `{"status":{"registrations":[{"type":"kubeClient","kubeClient":{}}]}}`
		return f.hub.Status().Patch(ctx, addOn, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
	<-done
}

// tokens are the tokens of the add-ons, by the name of their Secret.
func (f *addOnFleet) tokens(b *testing.B, addOns int) map[string]string {
	b.Helper()
	tokens := map[string]string{}
	for i := range addOns {
		secret := &corev1.Secret{}
		if err := f.managed.Get(b.Context(), client.ObjectKey{Namespace: names.AddOnNamespace, Name: names.AddOnHubKubeconfigSecret(addOnName(i))}, secret); err != nil {
			b.Fatal(err)
		}
		tokens[secret.Name] = string(secret.Data[names.KeyToken])
	}
	return tokens
}

// rotate asks for a new token of every add-on, and waits for all.
func (f *addOnFleet) rotate(b *testing.B, old map[string]string) {
	b.Helper()
	done := f.await(b, 0, len(old), func(secret *corev1.Secret) bool { return string(secret.Data[names.KeyToken]) != old[secret.Name] })
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, names.AnnotationRotate, now.Now().UTC().Format(time.RFC3339))
	forEach(b, 0, len(old), func(ctx context.Context, i int) error {
		addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: addOnName(i)}}
		return f.hub.Patch(ctx, addOn, client.RawPatch("application/merge-patch+json", patch))
	})
	<-done
}

// await returns what is closed when the Secrets of a range of add-ons are as wanted.
func (f *addOnFleet) await(b *testing.B, from, to int, wanted func(*corev1.Secret) bool) <-chan struct{} {
	b.Helper()
	missing := map[string]bool{}
	for i := from; i < to; i++ {
		missing[names.AddOnHubKubeconfigSecret(addOnName(i))] = true
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	watcher, err := f.managed.Watch(ctx, &corev1.SecretList{}, client.InNamespace(names.AddOnNamespace))
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		defer watcher.Stop()
		for len(missing) > 0 {
			event, ok := <-watcher.ResultChan()
			if !ok {
				b.Errorf("%d add-ons have no new token", len(missing))
				return
			}
			if secret, ok := event.Object.(*corev1.Secret); ok && wanted(secret) {
				delete(missing, secret.Name)
			}
		}
	}()
	return done
}

func addOnName(i int) string { return fmt.Sprintf("addon%03d", i) }

// forEach does something for a range of numbers, sixteen at a time.
func forEach(b *testing.B, from, to int, do func(ctx context.Context, i int) error) {
	b.Helper()
	work := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range work {
				if err := do(b.Context(), i); err != nil {
					b.Errorf("%s: %v", addOnName(i), err)
				}
			}
		})
	}
	for i := from; i < to; i++ {
		work <- i
	}
	close(work)
	group.Wait()
}

// processID finds the fleet's process whose command line has these arguments.
func (f *addOnFleet) processID(b *testing.B, args ...string) int {
	b.Helper()
	want := "\x00" + strings.Join(args, "\x00") + "\x00"
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	newest := 0
	for _, file := range found {
		command, _ := os.ReadFile(file)
		mounts, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
		if !strings.Contains(string(command), want) || !strings.Contains(string(mounts), f.dir) {
			continue // Or it has ended.
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			newest = max(newest, pid)
		}
	}
	if newest == 0 {
		b.Fatalf("no process runs %s", strings.Join(args, " "))
	}
	return newest
}
