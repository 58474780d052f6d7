package extauthz_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const (
	// members is how many clusters the hub has: what the documents promise.
	members = 1000
	// busy of them have workloads that ask, so many each.
	busy, identities = 16, 2200
	// capacity is how many tokens fit at most into the memory for verified ones and into
	// that for issued ones, 32 MiB each: an entry with its token takes 1 KiB or more.
	capacity = 32 << 20 / 1024
	// minting is how long the hub takes for a token, so that all that may be are on
	// their way.
	minting = 50 * time.Millisecond
	// askers is more than the TokenRequests that are made at a time, and tries how
	// often one asks that is put off.
	askers, tries = 512, 1000
	// target is the ServiceAccount of the hub that all become.
	target = "worker"
)

// memory is the private memory of a token authorizer, at rest with all clusters and at
// its peak.
type memory struct{ idleKiB, peakKiB int64 }

var full fleet.Once[memory]

// BenchmarkMemory has a token authorizer of the hub hold as much as it ever does:
// the keys and rules of a thousand clusters that publish them, as many verified
// and issued tokens as its bounds allow and more, as many TokenRequests on their
// way as it makes at a time, and a full audit queue, because nobody reads its log.
func BenchmarkMemory(b *testing.B) {
	if busy*identities < capacity {
		b.Fatal("the tokens do not fill the memory for them")
	}
	r := full.Result(b, fill)
	b.ReportMetric(float64(r.idleKiB)/1024, "idle-private-MiB")
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(0, "ns/op")
}

func fill(b *testing.B) *memory {
	b.Helper()
	cp := controlplane.Start(b)
	tokens := populate(b, cp, members, busy, identities)
	address := "127.0.0.1:" + measure.FreePort(b)
	unread := stalled(b)
	process := measure.Start(b, binary, "extauthz", mintingHub(b, cp),
		"--from-hub", "--addr=127.0.0.1", "--port="+address[len("127.0.0.1:"):], "--audit-log="+unread.Name())
	r := &memory{idleKiB: process.PrivateKiB(b)}
	flood(b, address, tokens)
	r.peakKiB = process.PeakKiB(b)
	go func() { _, _ = io.Copy(io.Discard, unread) }() // So that it can end.
	return r
}

// mintingHub is the kubeconfig of the token authorizer for a hub that makes tokens
// at once, of the form and the size of an API server's: to sign them all would take it
// minutes. Everything else is the API server's.
func mintingHub(b *testing.B, cp *controlplane.Own) string {
	b.Helper()
	config := cp.ConfigForAccount(b, names.HubNamespace, names.TokenAuthorizer)
	transport, err := rest.TransportFor(config)
	if err != nil {
		b.Fatal(err)
	}
	issued := cp.Token(b, namespace, target, authenticationv1.TokenRequestSpec{})
	api := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "https", strings.TrimPrefix(config.Host, "https://")
		},
	}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/token") {
			api.ServeHTTP(w, r)
			return
		}
		now.Sleep(minting)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: authenticationv1.SchemeGroupVersion.String()},
			Status:   authenticationv1.TokenRequestStatus{Token: issued, ExpirationTimestamp: metav1.NewTime(now.Now().Add(time.Hour))},
		})
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	b.Cleanup(front.CloseClientConnections) // The watches do not end by themselves.
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["hub"] = &clientcmdapi.Cluster{
		Server: front.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}),
	}
	kubeconfig.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
	kubeconfig.CurrentContext = "hub"
	path := filepath.Join(b.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		b.Fatal(err)
	}
	return path
}

// populate makes the clusters, each with its keys and its rules, and returns
// tokens of as many identities of each that is busy.
func populate(b *testing.B, cp *controlplane.Own, members, busy, identities int) []string {
	b.Helper()
	admin := cp.Client(b)
	installation.Hub(b, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	installation.Create(b, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: target}})
	installation.Permit(b, admin, namespace, target)
	tokens := make([]string, busy*identities)
	fleet.Each(b, members, func(ctx context.Context, i int) error {
		name := fleet.Name(i)
		iss := "https://" + name + ".example.com"
		keys := []*issuer.Key{issuer.NewKey(b, "ES256"), issuer.NewKey(b, "ES256")}
		for k := range identities {
			if i < busy {
				tokens[i*identities+k] = keys[k%2].Token(b, issuer.BoundClaims(iss, namespace, "workload-"+strconv.Itoa(k), now.Now().Add(-time.Second)))
			}
		}
		return member(ctx, b, admin, name, iss, keys)
	})
	return tokens
}

// member makes one cluster that has joined, with what its agent publishes and
// what its owner allows.
func member(ctx context.Context, b *testing.B, admin client.Client, name, iss string, keys []*issuer.Key) error {
	b.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	if err := admin.Create(ctx, cluster); err != nil {
		return err
	}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "Benchmark",
	})
	if err := admin.Status().Update(ctx, cluster); err != nil {
		return err
	}
	rules := &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.Name}}
	rules.Spec.Audiences = []v1alpha1.Audience{audience}
	rules.Spec.Allow = []v1alpha1.Rule{{Namespaces: []v1alpha1.Pattern{namespace}, MapTo: v1alpha1.Mapping{Namespace: namespace, Name: target}}}
	rules.Spec.Limits = &v1alpha1.Limits{Cluster: &v1alpha1.Rate{PerSecond: 1000, Burst: 10000}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.IssuerConfigMap},
			Data:       issuer.Published(b, iss, name, string(cluster.UID), keys...),
		},
		rules,
	} {
		if err := admin.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// stalled is a file that takes a little and then no more, as a log whose reader
// hangs.
func stalled(b *testing.B) *os.File {
	b.Helper()
	path := filepath.Join(b.TempDir(), "audit")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pipe.Close() })
	return pipe
}

// flood asks once with each token, and again where it is put off.
func flood(b *testing.B, address string, tokens []string) {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	var next, put atomic.Int64
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tokens)) && !b.Failed(); i = next.Add(1) - 1 {
				if err := insist(b.Context(), conn, tokens[i], &put); err != nil {
					b.Errorf("token %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	b.Logf("%d tokens, put off %d times", len(tokens), put.Load())
}

func insist(ctx context.Context, conn *grpc.ClientConn, token string, put *atomic.Int64) error {
	request, err := proto.Marshal(checkRequest(token))
	if err != nil {
		return err
	}
	w := &worker{conn: conn, requests: [][]byte{request}}
	for range tries {
		if w.problem = nil; ctx.Err() != nil {
			return fmt.Errorf("the benchmark ended: %w", ctx.Err())
		}
		if w.ask(ctx, 0, now.Now()); w.problem == nil {
			return nil
		}
		put.Add(1)
		now.Sleep(50 * time.Millisecond)
	}
	return w.problem
}
