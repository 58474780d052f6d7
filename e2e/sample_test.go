package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// addOnNamespace is where the agents of the suite's add-ons are installed.
const addOnNamespace = "open-cluster-management-agent-addon"

// addOn is an add-on of the fleet.
type addOn struct {
	fleet *environment
	name  string
	hub   client.Client
	// namespace is where its agents are installed; empty means addOnNamespace.
	namespace string
}

func (a *addOn) agentNamespace() string { return cmp.Or(a.namespace, addOnNamespace) }

// beat is what the sample add-on reports to the hub.
type beat struct {
	sequence int
	// missed counts those that failed, but for those that a busy hub did not answer in
	// time, and refused those of them that the hub did not let in.
	missed, refused int
	// failure is why the last one that failed did.
	failure          string
	user, credential string
}

// installSample installs the hub part of examples/heartbeat as it is, but for
// a name of the test's own, until the end of the test.
func installSample(t *testing.T, name string) *addOn {
	t.Helper()
	return fleet.installSample(t, name)
}

func (e *environment) installSample(t *testing.T, name string) *addOn {
	t.Helper()
	manifest, err := os.ReadFile("../examples/heartbeat/deploy/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		sampleImage, sampleImage, "--agent-interval=10s", "--agent-interval=200ms", "heartbeat", name,
	).Replace(string(manifest))
	a := &addOn{fleet: e, name: name, hub: e.client(t, "hub")}
	for _, obj := range parse(t, text) {
		if err := a.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	return a
}

// parse returns the objects of a manifest.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.TrimPrefix(text, "---\n"), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	return objects
}

// add makes the add-on one of a cluster's until the end of the test, which waits until
// the work agent has taken the add-on's agent away: other tests have the same cluster.
func (a *addOn) add(t *testing.T, cluster string) {
	t.Helper()
	obj := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: a.name, Annotations: map[string]string{names.AnnotationInstallNamespace: a.agentNamespace()},
	}}
	if err := a.hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		_ = a.hub.Delete(ctx, obj)
		if err := a.awaitNoWorks(ctx, cluster); err != nil {
			t.Errorf("the works of %s on %s: %v", a.name, cluster, err)
		}
	})
}

// awaitNoWorks waits until no ManifestWork of the add-on is left on a cluster that is.
func (a *addOn) awaitNoWorks(ctx context.Context, cluster string) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var works workv1.ManifestWorkList
		err := a.hub.List(ctx, &works, client.InNamespace(cluster), client.MatchingLabels{names.LabelAddOnName: a.name})
		return len(works.Items) == 0, err
	})
}

// awaitAgent waits until the work agent has applied what the add-on's manager wants on a
// cluster.
func (a *addOn) awaitAgent(t *testing.T, cluster string) {
	t.Helper()
	a.awaitCondition(t, cluster, addonv1beta1.ManagedClusterAddOnManifestApplied)
}

// get returns the add-on of a cluster.
func (a *addOn) get(ctx context.Context, cluster string) (*addonv1beta1.ManagedClusterAddOn, error) {
	var obj addonv1beta1.ManagedClusterAddOn
	return &obj, a.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: a.name}, &obj)
}

// kubeClient is the registration that the add-on's agent talks to the hub with.
func (a *addOn) kubeClient(ctx context.Context, cluster string) (*addonv1beta1.KubeClientConfig, error) {
	obj, err := a.get(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, r := range obj.Status.Registrations {
		if r.Type == addonv1beta1.KubeClient && r.KubeClient != nil {
			return r.KubeClient, nil
		}
	}
	return nil, fmt.Errorf("no kubeClient registration in %+v", obj.Status)
}

// awaitCondition waits for a condition of the add-on to be true.
func (a *addOn) awaitCondition(t *testing.T, cluster, kind string) {
	t.Helper()
	eventually(t, fmt.Sprintf("condition %s of %s on %s", kind, a.name, cluster), func(ctx context.Context) error {
		obj, err := a.get(ctx, cluster)
		if err != nil {
			return err
		}
		if trueCondition(obj.Status.Conditions, kind) == nil {
			return fmt.Errorf("conditions are %+v", obj.Status.Conditions)
		}
		return nil
	})
}

func trueCondition(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == kind && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// last is the add-on's last heartbeat that the hub has.
func (a *addOn) last(ctx context.Context, cluster string) (beat, error) {
	var cm corev1.ConfigMap
	if err := a.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: a.name}, &cm); err != nil {
		return beat{}, err
	}
	sequence, err1 := strconv.Atoi(cm.Data["sequence"])
	refused, err2 := strconv.Atoi(cm.Data["refused"])
	missed, err3 := strconv.Atoi(cm.Data["missed"])
	slow, err4 := strconv.Atoi(cm.Data["slow"])
	return beat{
		sequence: sequence, missed: missed - slow, refused: refused, failure: cm.Data["failure"],
		user: cm.Data["user"], credential: cm.Data["credential"],
	}, errors.Join(err1, err2, err3, err4)
}

// awaitBeat waits for a heartbeat with a credential of a kind, "certificate" or
// "token", that is later than after.
func (a *addOn) awaitBeat(t *testing.T, cluster, credential string, after beat) beat {
	t.Helper()
	var last beat
	eventually(t, fmt.Sprintf("%s of %s sends a heartbeat with a %s", a.name, cluster, credential), func(ctx context.Context) error {
		var err error
		last, err = a.last(ctx, cluster)
		if err == nil && (last.credential != credential || last.sequence <= after.sequence) {
			err = fmt.Errorf("the last one is %+v", last)
		}
		return err
	})
	return last
}

// secret is the add-on's credential on a cluster.
func (a *addOn) secret(ctx context.Context, cluster client.Client) (*corev1.Secret, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: a.agentNamespace(), Name: names.AddOnHubKubeconfigSecret(a.name)}
	return &secret, cluster.Get(ctx, key, &secret)
}

// config is the connection to the hub that the add-on has on a cluster.
func (a *addOn) config(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	secret, err := a.secret(t.Context(), a.fleet.client(t, cluster))
	if err != nil {
		t.Fatal(err)
	}
	hub := a.fleet.config(t, "hub")
	return &rest.Config{
		Host: hub.Host, QPS: -1,
		BearerToken: string(secret.Data[names.KeyToken]),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   hub.CAData,
			CertData: secret.Data[names.KeyTLSCert],
			KeyData:  secret.Data[names.KeyTLSKey],
		},
	}
}

// claims are what is of interest in a service account token.
type claims struct {
	raw        string
	Issued     int64  `json:"iat"`
	Expires    int64  `json:"exp"`
	Subject    string `json:"sub"`
	Kubernetes struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// parseToken reads a token without verifying it; the API server does that.
func parseToken(token []byte) (claims, error) {
	c := claims{raw: string(token)}
	return c, jwk.UnverifiedClaims(c.raw, &c)
}

// awaitToken waits for a token on a cluster that is not old.
func (a *addOn) awaitToken(t *testing.T, cluster, old string) claims {
	t.Helper()
	managed := a.fleet.client(t, cluster)
	var found claims
	eventually(t, fmt.Sprintf("a new token of %s on %s", a.name, cluster), func(ctx context.Context) error {
		secret, err := a.secret(ctx, managed)
		if err != nil {
			return err
		}
		found, err = parseToken(secret.Data[names.KeyToken])
		if err == nil && found.raw == old {
			err = errors.New("it is the old one")
		}
		return err
	})
	return found
}

// wantNothing waits until none of objects is there.
func wantNothing(t *testing.T, c client.Client, what string, objects ...client.Object) {
	t.Helper()
	eventually(t, what, func(ctx context.Context) error {
		for _, obj := range objects {
			switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); {
			case err == nil:
				return fmt.Errorf("%T %s is there", obj, obj.GetName())
			case !apierrors.IsNotFound(err):
				return err
			}
		}
		return nil
	})
}
