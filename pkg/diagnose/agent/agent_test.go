package agent_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

func klusterlet() *operatorv1.Klusterlet {
	return &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: names.KlusterletName}, Spec: operatorv1.KlusterletSpec{ClusterName: "cluster1"}}
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: name}, Data: data}
}

// TestUnaccepted: an agent without a certificate waits for the hub, with its key if it has one.
func TestUnaccepted(t *testing.T) {
	t.Parallel()
	key, encoded, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, err := pemutil.KeyFingerprint(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for try, objs := range map[string][]client.Object{
		"on the hub: ocm accept cluster1": {klusterlet()},
		"on the hub: ocm accept cluster1 --fingerprint " + fingerprint: {
			klusterlet(), secret(names.PendingCredentialSecret, map[string][]byte{names.KeyTLSKey: encoded}),
		},
	} {
		got := diagnosis.Outcome(t, agent.Steps(diagnosis.Scope(t, objs...), diagnose.DefaultLimit), "the agent has a credential of the hub")
		if got.Status != finding.Failed || got.Try != try {
			t.Errorf("%+v, want to try %q", got, try)
		}
	}
}

// TestNotInstalled: the advice for a cluster without an agent is to print a join command.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	got := diagnosis.Outcome(t, agent.Steps(diagnosis.Scope(t), diagnose.DefaultLimit), "the agent is installed")
	if got.Status != finding.Failed || !strings.HasSuffix(got.Try, "ocm get token") {
		t.Errorf("%+v", got)
	}
}

// TestAddOnSecrets: an expired token of an add-on fails the check.
func TestAddOnSecrets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		expires time.Time
		want    finding.Status
	}{
		"valid":   {diagnosis.Now().Add(time.Hour), finding.OK},
		"expired": {diagnosis.Now(), finding.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := secret("a1-hub-kubeconfig", map[string][]byte{names.KeyExpiration: []byte(tc.expires.Format(time.RFC3339))})
			token.Labels = map[string]string{names.LabelAddOnCredential: names.AgentNamespace}
			bootstrap := secret(names.BootstrapHubKubeconfigSecret, map[string][]byte{names.KeyKubeconfig: []byte(kubeconfig)})
			steps := agent.Steps(diagnosis.Scope(t, klusterlet(), token, bootstrap), diagnose.DefaultLimit)
			if got := diagnosis.Outcome(t, steps, "the credentials of add-ons are good"); got.Status != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
			if got := diagnosis.Outcome(t, steps, "the hub answers and is the right one"); got.Status != finding.Warning || !strings.HasPrefix(got.Message, "from this machine: ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// kubeconfig is of a hub that does not answer.
const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "t"}}]}`
