package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

// hubAudience is what workloads ask their tokens for.
const hubAudience = "https://hub.example.com"

// kubectlImage runs in Pods that use a token as a user's workload would.
const kubectlImage = "kubectl-ocm/kubectl"

// TestTokenExchange is the whole of it on the fleet, as a user sets it up: the
// agents publish their clusters' keys, the operator runs the token authorizer,
// rules and rights come from the commands, and a Pod of each cluster reaches the
// hub's API through a proxy that asks the authorizer as Envoy does.
func TestTokenExchange(t *testing.T) {
	t.Parallel()
	x := &tokenExchange{hub: fleet.client(t, "hub"), clusters: []string{"cluster1", "cluster2"}, front: newHubProxy(t)}
	x.address = toPods(t, x.front)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the clusters publish their keys, and the hub trusts them", x.published},
		{"both have one and the same issuer", x.oneIssuer},
		{"without a rule a workload is refused", x.refused},
		{"rules and rights come from two commands", x.allow},
		{"a Pod of each cluster reaches the hub as its own ServiceAccount", x.pods},
		{"the commands report it", x.reported},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // Later steps build on this one.
		}
	}
}

type tokenExchange struct {
	hub      client.Client
	clusters []string
	// front is the proxy, and address where Pods reach it.
	front   *httptest.Server
	address string
}

func (x *tokenExchange) published(t *testing.T) {
	for _, cluster := range x.clusters {
		awaitCondition(t, x.hub, cluster, names.ConditionIssuerTrusted)
	}
}

func (x *tokenExchange) oneIssuer(t *testing.T) {
	var issuers, keys []string
	for _, cluster := range x.clusters {
		var published corev1.ConfigMap
		if err := x.hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: names.IssuerConfigMap}, &published); err != nil {
			t.Fatal(err)
		}
		issuers = append(issuers, published.Data[names.IssuerKeyIssuer])
		keys = append(keys, published.Data[names.IssuerKeyJWKS])
	}
	if issuers[0] != issuers[1] || keys[0] == keys[1] {
		t.Errorf("issuers %v; keys are the same: %v", issuers, keys[0] == keys[1])
	}
}

func (x *tokenExchange) refused(t *testing.T) {
	for _, cluster := range x.clusters {
		token := workloadToken(t, cluster, "token-exchange", "web")
		eventually(t, "an answer about "+cluster, func(ctx context.Context) error {
			status, err := ask(ctx, x.front, token)
			if err == nil && status != http.StatusForbidden {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
}

func (x *tokenExchange) allow(t *testing.T) {
	for _, cluster := range x.clusters {
		target := cluster + "-workloads"
		makeAccount(t, x.hub, target, "token-exchange.web")
		fleet.must(t, "exchange", "allow", "--context", "hub", cluster, "token-exchange/web",
			"--to", target+"/{namespace}.{name}", "--audience", hubAudience, "--require-bound-pod")
	}
	fleet.must(t, "exchange", "policy", "lint", "--context", "hub")
	rights := fleet.must(t, "exchange", "rbac", "--context", "hub")
	kubectl(t, "hub", "apply", "-f", writeFile(t, []byte(rights)))
}

// pods runs `kubectl auth whoami` in a Pod of each cluster, with the Pod's own
// token, against the proxy.
func (x *tokenExchange) pods(t *testing.T) {
	for _, cluster := range x.clusters {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			managed := fleet.client(t, cluster)
			makeAccount(t, managed, "token-exchange", "web")
			want := "system:serviceaccount:" + cluster + "-workloads:token-exchange.web"
			eventually(t, "a Pod of "+cluster+" is "+want, func(ctx context.Context) error {
				got, err := x.runPod(ctx, t, managed, cluster)
				if err == nil && got != want {
					err = fmt.Errorf("it is %q", got)
				}
				if err != nil {
					t.Logf("a Pod of %s: %v", cluster, err) // What the last one says may be cut short.
				}
				return err
			})
		})
	}
}

// runPod runs the Pod once and returns who it was to the hub.
func (x *tokenExchange) runPod(ctx context.Context, t *testing.T, managed client.Client, cluster string) (string, error) {
	t.Helper()
	pod := whoAmIPod(x.front, x.address)
	if err := managed.Create(ctx, pod); err != nil {
		return "", err
	}
	defer func() { _ = managed.Delete(context.WithoutCancel(ctx), pod, client.GracePeriodSeconds(0)) }()
	for pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		if !pause.For(ctx, clock.RealClock{}, 100*time.Millisecond) {
			return "", fmt.Errorf("the Pod is %s: %w", pod.Status.Phase, ctx.Err())
		}
		if err := managed.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return "", err
		}
	}
	out := kubectl(t, cluster, "-n", pod.Namespace, "logs", pod.Name)
	if pod.Status.Phase == corev1.PodFailed {
		return "", errors.New(out)
	}
	return strings.TrimSpace(out), nil
}

// whoAmIPod asks the hub behind a proxy, at an address, who it is, with a token that is
// mounted. The proxy's certificate is not for the address.
func whoAmIPod(front *httptest.Server, address string) *corev1.Pod {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "token-exchange", GenerateName: "who-am-i-",
			// It has no secret: the token is a file beside it.
			Annotations: map[string]string{"kubeconfig": `{"apiVersion":"v1","kind":"Config","current-context":"hub",` +
				`"contexts":[{"name":"hub","context":{"cluster":"hub","user":"me"}}],` +
				`"clusters":[{"name":"hub","cluster":{"server":"https://` + address + `","tls-server-name":"example.com",` +
				`"certificate-authority-data":"` + base64.StdEncoding.EncodeToString(ca) + `"}}],` +
				`"users":[{"name":"me","user":{"tokenFile":"/etc/hub/token"}}]}`},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "web", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "kubectl", Image: kubectlImage, ImagePullPolicy: corev1.PullNever,
				Args:         []string{"kubectl", "--kubeconfig=/etc/hub/kubeconfig", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"},
				VolumeMounts: []corev1.VolumeMount{{Name: "hub", MountPath: "/etc/hub", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "hub", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: hubAudience, ExpirationSeconds: new(int64(3600)), Path: "token"}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
						Path: "kubeconfig", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['kubeconfig']"},
					}}}},
				},
			}}}},
		},
	}
}

func (x *tokenExchange) reported(t *testing.T) {
	list := fleet.must(t, "issuer", "list", "--context", "hub")
	for _, cluster := range x.clusters {
		if !strings.Contains(list, cluster) {
			t.Errorf("issuer list does not have %s:\n%s", cluster, list)
		}
	}
	fleet.must(t, "check", "tokens", "--context", "hub")
}

// workloadToken has a managed cluster's API server issue a token for the hub.
func workloadToken(t *testing.T, cluster, namespace, name string) string {
	t.Helper()
	managed := fleet.client(t, cluster)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{hubAudience}}}
	if err := managed.SubResource("token").Create(t.Context(), makeAccount(t, managed, namespace, name), request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// makeAccount makes a ServiceAccount with its namespace, if they are not there.
func makeAccount(t *testing.T, c client.Client, namespace, name string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, account} {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}
	return account
}

// newHubProxy puts a proxy before the hub's API that asks the fleet's token
// authorizers, which it knows by the CA that the operator publishes.
func newHubProxy(t *testing.T) *httptest.Server {
	t.Helper()
	return extauthzproxy.ServeTLS(t, extauthzproxy.Before(t, fleet.config(t, "hub"), extauthzproxy.Config{
		Endpoints: authorizers(t), Credentials: credentials.NewTLS(authorizerTLS(t)),
		Timeout: patience, StatusOnError: http.StatusServiceUnavailable, EncodeRawHeaders: true,
	}))
}

// toPods returns where Pods reach a server of the test.
func toPods(t *testing.T, server *httptest.Server) string {
	t.Helper()
	local := server.Listener.Addr().String()
	if fleet.host == "" {
		return local
	}
	_, port, err := net.SplitHostPort(local)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(fleet.host, port)
	stop, err := forward(t.Context(), "tcp", address, "tcp", local)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// fromPod returns where the test reaches a port of a Pod of the hub. Pods on kind are
// reached from their node only, which is a container; they do not listen on localhost,
// where kubectl port-forward connects to.
func fromPod(t *testing.T, pod *corev1.Pod, port int) string {
	t.Helper()
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))
	if fleet.host == "" {
		return address
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				command := exec.CommandContext(t.Context(), "docker", "exec", "-i", pod.Spec.NodeName, "socat", "-", "TCP:"+address)
				command.Stdin, command.Stdout, command.WaitDelay = in, in, time.Second
				_ = command.Run() // The client sees the connection end.
			}()
		}
	}()
	return listener.Addr().String()
}

// authorizerTLS is how a proxy knows the token authorizer.
func authorizerTLS(t *testing.T) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	eventually(t, "the CA of the token authorizer", func(ctx context.Context) error {
		var bundle corev1.ConfigMap
		key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.TokenAuthorizerCAConfigMap}
		if err := fleet.client(t, "hub").Get(ctx, key, &bundle); err != nil {
			return err
		}
		if !roots.AppendCertsFromPEM([]byte(bundle.Data[names.KeyCABundle])) {
			return errors.New("there is no CA in it")
		}
		return nil
	})
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: names.TokenAuthorizer + "." + names.HubNamespace + ".svc"}
}

// authorizers are where the ready Pods of the token authorizer serve.
func authorizers(t *testing.T) []string {
	t.Helper()
	var found []*corev1.Pod
	eventually(t, "two token authorizers", func(ctx context.Context) error {
		var pods corev1.PodList
		err := fleet.client(t, "hub").List(ctx, &pods, client.InNamespace(names.HubNamespace), client.MatchingLabels{"app": names.TokenAuthorizer})
		if err != nil {
			return err
		}
		found = nil
		for i := range pods.Items {
			if ready(&pods.Items[i]) {
				found = append(found, &pods.Items[i])
			}
		}
		if len(found) < 2 {
			return fmt.Errorf("%d are ready", len(found))
		}
		return nil
	})
	var endpoints []string
	for _, pod := range found {
		endpoints = append(endpoints, fromPod(t, pod, names.TokenAuthorizerPort))
	}
	return endpoints
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// ask sends a request through a proxy with a token, and returns the status.
func ask(ctx context.Context, front *httptest.Server, token string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/version", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := front.Client().Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
