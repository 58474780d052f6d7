package agent_test

import (
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// verbosity is the most that a user can set, which shows no bodies of requests.
const verbosity = 7

// listened is the log of all clients of the tests, and of the agents that log to
// klog, as long as listening says so.
var (
	listened  logs.Log
	listening atomic.Bool
)

// listenToClients makes klog's log listened, in the format of the real agent.
func listenToClients() {
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	_ = flags.Set("v", "7") // As connections are made only then that log their requests.
	all := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity), textlogger.Output(&listened)))
	klog.SetLogger(logr.New(gate{all.GetSink()}))
}

// gate lets entries through while a test listens.
type gate struct{ logr.LogSink }

// Enabled implements logr.LogSink.
func (g gate) Enabled(level int) bool { return listening.Load() && g.LogSink.Enabled(level) }

// Error implements logr.LogSink.
func (g gate) Error(err error, message string, values ...any) {
	if listening.Load() {
		g.LogSink.Error(err, message, values...)
	}
}

// WithValues implements logr.LogSink.
func (g gate) WithValues(values ...any) logr.LogSink { return gate{g.LogSink.WithValues(values...)} }

// WithName implements logr.LogSink.
func (g gate) WithName(name string) logr.LogSink { return gate{g.LogSink.WithName(name)} }

// bootstrapToken has the hub issue a token that lets an agent register.
func (h *hub) bootstrapToken(t *testing.T, account string) string {
	t.Helper()
	create(t, h.admin,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: names.BootstrapClusterRole, APIGroup: rbacv1.GroupName},
		})
	return h.Token(t, "default", account, authenticationv1.TokenRequestSpec{})
}

// withToken is a bootstrap kubeconfig with a token.
func (h *hub) withToken(t *testing.T, token string) []byte {
	t.Helper()
	bootstrap, err := kubeconfig.ParseHub(h.bootstrapKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	bootstrap.User = clientcmdapi.AuthInfo{Token: token}
	encoded, err := bootstrap.EncodeBootstrap()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// middle is a line of a private key that no other key has.
func middle(t *testing.T, key []byte) string {
	t.Helper()
	lines := strings.Split(string(key), "\n")
	if len(lines) < 4 {
		t.Fatalf("a key of %d lines", len(lines))
	}
	return lines[2]
}

// TestNoCredentialInLogs follows an agent through its registration, a renewal,
// and bootstrap kubeconfigs that are refused or cannot be read. Neither its log
// nor what it says in the Klusterlet has a token or a key.
func TestNoCredentialInLogs(t *testing.T) { //nolint:paralleltest // klog has one log for all tests
	h := newHub(t, controlplane.WithCertDuration(longLife))
	listening.Store(true)
	t.Cleanup(func() { listening.Store(false) })
	s := newSpoke(t, nil, "secretive")
	s.logger = klog.Background()
	token := h.bootstrapToken(t, "secretive")
	signature := token[strings.LastIndex(token, ".")+1:]
	s.setBootstrap(t, h.withToken(t, token))
	c := s.moveClock(t)
	p := s.start(t)
	p.reaches(t, agent.Requested)
	secrets := []string{signature, middle(t, s.secret(t, names.PendingCredentialSecret).Data[names.KeyTLSKey])}
	h.join(t, p, s.cluster)
	cert := s.identify(t, names.HubKubeconfigSecret)
	s.fallDue(t, c)
	h.renewals(t, s.cluster)
	eventually(t, "the renewal", func() (bool, error) { return s.identify(t, names.HubKubeconfigSecret) != cert, nil })
	p.reaches(t, agent.Running)
	secrets = append(secrets, middle(t, s.secret(t, names.HubKubeconfigSecret).Data[names.KeyTLSKey]))
	p.stop()

	if err := s.admin.Delete(t.Context(), s.secret(t, names.HubKubeconfigSecret)); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, unfit := range []struct{ reason, kubeconfig string }{
		{"BootstrapSecretError", strings.Replace(string(h.withToken(t, token)), "token: ", "token: [", 1)},
		{"BootstrapSecretUnauthorized", string(h.withToken(t, token+"x"))},
		{"BootstrapSecretError", token},
	} {
		s.setBootstrap(t, []byte(unfit.kubeconfig))
		p = s.start(t)
		told = append(told, s.klusterletSays(t, metav1.ConditionTrue, unfit.reason+",HubKubeConfigSecretMissing", ""))
		p.stop()
	}

	for _, shows := range []string{"/managedclusters/" + s.cluster, "/secrets/" + names.BootstrapHubKubeconfigSecret, "Authorization: Bearer <masked>"} {
		if listened.With(shows) == "" {
			t.Errorf("nothing is logged about %s, so that nothing is shown", shows)
		}
	}
	said := strings.Join(told, "\n")
	for _, secret := range secrets {
		for _, trace := range logs.Traces(secret) {
			if entry := listened.With(trace); entry != "" {
				t.Errorf("a credential is in the log: %s", entry)
			}
			if strings.Contains(said, trace) {
				t.Errorf("a credential is in a condition: %s", said)
			}
		}
	}
}
