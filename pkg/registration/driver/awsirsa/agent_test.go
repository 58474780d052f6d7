package awsirsa_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

const (
	clusterARN = "arn:aws:eks:us-west-2:222222222222:cluster/managed1"
	// suffix is the MD5 sum of 111111111111#hub#222222222222#managed1.
	suffix  = "db7ae30ac42f81e11a2997c665f04ca9"
	hubRole = "arn:aws:iam::111111111111:role/ocm-hub-" + suffix
)

func config() awsirsa.AgentConfig {
	return awsirsa.AgentConfig{
		Identity: driver.Identity{Cluster: "c1", Agent: "a1"},
		Pair: identity.Pair{
			Hub:     awsarn.Cluster{Partition: "aws", Region: "us-west-2", Account: "111111111111", Name: "hub"},
			Managed: awsarn.Cluster{Partition: "aws", Region: "us-west-2", Account: "222222222222", Name: "managed1"},
		},
		Clock: clock.RealClock{},
	}
}

func address() kubeconfig.Hub {
	return kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{Server: "https://hub.example.com"}}
}

// secret is the Secret of an agent with another user entry.
func secret(t *testing.T, user clientcmdapi.AuthInfo) driver.Data {
	t.Helper()
	data, err := driver.SecretData(address(), config().Identity, user, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecorate(t *testing.T) {
	t.Parallel()
	cluster := &clusterv1.ManagedCluster{}
	awsirsa.NewAgent(config()).Decorate(cluster)
	if cluster.Annotations[identity.AnnotationCluster] != clusterARN || cluster.Annotations[identity.AnnotationSuffix] != suffix {
		t.Errorf("the annotations are %v", cluster.Annotations)
	}
}

// TestAnnounced: whichever spelling of the annotation names the cluster, the agent reads it
// as the hub does.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"ours":           {map[string]string{identity.AnnotationCluster: clusterARN, identity.AnnotationSuffix: suffix}, true},
		"bare":           {map[string]string{identity.AnnotationClusterBare: clusterARN}, true},
		"prefixed":       {map[string]string{identity.AnnotationClusterOld: clusterARN}, true},
		"none":           {nil, false},
		"another":        {map[string]string{identity.AnnotationCluster: clusterARN + "0"}, false},
		"two":            {map[string]string{identity.AnnotationCluster: clusterARN, identity.AnnotationClusterBare: clusterARN + "0"}, false},
		"another suffix": {map[string]string{identity.AnnotationCluster: clusterARN, identity.AnnotationSuffix: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: tc.annotations}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
				Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue}}},
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).Build()
			step, err := awsirsa.NewAgent(config()).Obtain(t.Context(), hub, nil)
			if err != nil || (step.Issued != nil) != tc.want {
				t.Errorf("%+v, %v", step, err)
			}
		})
	}
}

// TestStored tells the credential of this cluster from what else a Secret can hold.
func TestStored(t *testing.T) {
	t.Parallel()
	agent := awsirsa.NewAgent(config())
	changed := func(change func(*clientcmdapi.ExecConfig)) clientcmdapi.AuthInfo {
		user := agent.User()
		change(user.Exec)
		return user
	}
	for name, tc := range map[string]struct {
		stored driver.Data
		want   error
	}{
		"its own":          {stored: secret(t, agent.User())},
		"nothing":          {want: credential.ErrMissing},
		"no kubeconfig":    {stored: driver.Data{names.KeyKubeconfig: []byte("{")}, want: credential.ErrMalformed},
		"a certificate":    {stored: secret(t, clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"}), want: credential.ErrWrongIdentity},
		"another program":  {stored: secret(t, changed(func(e *clientcmdapi.ExecConfig) { e.Command = "sh" })), want: credential.ErrWrongIdentity},
		"another role":     {stored: secret(t, changed(func(e *clientcmdapi.ExecConfig) { e.Args[len(e.Args)-1] = hubRole + "0" })), want: credential.ErrWrongIdentity},
		"another hub":      {stored: secret(t, changed(func(e *clientcmdapi.ExecConfig) { e.Args[3] = "hub2" })), want: credential.ErrWrongIdentity},
		"further argument": {stored: secret(t, changed(func(e *clientcmdapi.ExecConfig) { e.Args = append(e.Args, "x") })), want: credential.ErrWrongIdentity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			validity, err := agent.Inspect(tc.stored)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || (err == nil) != validity.Unlimited {
				t.Errorf("got %+v, %v, want %v", validity, err, tc.want)
			}
			if _, err := agent.Open(address(), "", tc.stored); (err == nil) != (tc.want == nil) {
				t.Errorf("opened with %v", err)
			}
		})
	}
	if one, other := agent.Fingerprint(secret(t, agent.User())), agent.Fingerprint(secret(t, changed(func(e *clientcmdapi.ExecConfig) { e.Args[len(e.Args)-1] = hubRole + "0" }))); one == "" || one == other {
		t.Errorf("the roles of two clusters are told by %q and %q", one, other)
	}
}

// TestPluginIsOurs: what is stored is accepted by the rule for stored kubeconfigs,
// which runs this program and no other.
func TestPluginIsOurs(t *testing.T) {
	t.Parallel()
	hub, err := kubeconfig.ParseHub(secret(t, awsirsa.NewAgent(config()).User())[names.KeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	contained, err := hub.Contained(nil)
	if err != nil {
		t.Fatal(err)
	}
	if exec := contained.User.Exec; exec == nil || exec.Command == "kubectl-ocm" || !slices.Contains(exec.Args, hubRole) || !strings.Contains(exec.Command, ".test") {
		t.Errorf("it runs %+v", contained.User.Exec)
	}
}
