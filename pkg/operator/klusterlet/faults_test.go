package klusterlet_test

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// errKilled is what a dead operator's requests end with.
var errKilled = errors.New("killed")

// mortal lets a number of writes through; then no request goes through any more.
type mortal struct {
	next http.RoundTripper
	left atomic.Int64
	dead chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-m.dead:
		return nil, errKilled
	default:
	}
	if req.Method == http.MethodGet || req.URL.Query().Has("dryRun") {
		return m.next.RoundTrip(req)
	}
	left := m.left.Add(-1)
	if left < 0 {
		return nil, errKilled
	}
	response, err := m.next.RoundTrip(req)
	if left == 0 {
		close(m.dead)
	}
	return response, err
}

// killUntil runs operators that live for one write, or two, or three, in turn,
// until done returns nil. It returns how many it took.
func (c *cluster) killUntil(t *testing.T, done func() error) int {
	t.Helper()
	runs := 0
	for done() != nil {
		runs++
		if runs > 100 {
			t.Fatalf("no progress in 100 lives: %v", done())
		}
		life := &mortal{dead: make(chan struct{})}
		life.left.Store(int64(1 + runs%3))
		stop := c.run(t, func(_ *klusterlet.Config, connection *rest.Config) {
			connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
				life.next = next
				return life
			})
		})
		eventually(t, "the operator dies", func() error {
			select {
			case <-life.dead:
				return nil
			default:
				return done()
			}
		})
		stop()
	}
	return runs
}

func TestKilledAfterAnyWrite(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	runs := c.killUntil(t, func() error {
		if !apimeta.IsStatusConditionTrue(c.klusterlet(t).Status.Conditions, "Applied") {
			return errors.New("it is not applied")
		}
		return nil
	})
	if runs < 5 {
		t.Errorf("installed within %d lives", runs)
	}
	if err := c.client.Delete(t.Context(), c.klusterlet(t)); err != nil {
		t.Fatal(err)
	}
	runs = c.killUntil(t, func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
	if runs < 5 {
		t.Errorf("removed within %d lives", runs)
	}
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		if err := c.client.List(t.Context(), list, client.HasLabels{names.LabelCreatedByKlusterlet}); err != nil {
			t.Fatal(err)
		}
		if n := apimeta.LenList(list); n != 0 {
			t.Errorf("%d left in %T", n, list)
		}
	}
}

func TestRestartAndUpgradeWriteOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	stop := c.run(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	before := c.quiet(t)
	stop()

	stop = c.run(t, nil)
	if after := c.quiet(t); after != before {
		t.Errorf("%d writes after a restart", after-before)
	}
	stop()
	role := &rbacv1.ClusterRole{}
	key := client.ObjectKey{Name: "open-cluster-management:klusterlet-registration:agent"}
	if err := c.client.Get(t.Context(), key, role); err != nil {
		t.Fatal(err)
	}
	written := role.ResourceVersion
	old, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}

	c.run(t, func(conf *klusterlet.Config, _ *rest.Config) { conf.Image, conf.Version = "ours:v2", "0.2.0" })
	eventually(t, "the new image", func() error {
		agent, err := c.agent(t)
		if err != nil {
			return err
		}
		if agent.UID != old.UID {
			t.Fatal("the deployment was made anew")
		}
		if got := agent.Spec.Template.Spec.Containers[0].Image; got != "ours:v2" {
			return errors.New("the image is " + got)
		}
		return nil
	})
	c.quiet(t)
	if err := c.client.Get(t.Context(), key, role); err != nil {
		t.Fatal(err)
	}
	if role.ResourceVersion != written {
		t.Error("a role that did not change was written")
	}
}

// TestNamespacedAppliedManifestWorksAreReplaced begins with the CRD that unjoin
// of an earlier build left behind: without label and version, and with a scope
// that no other OCM installation can work with.
func TestNamespacedAppliedManifestWorksAreReplaced(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(crds, func(crd *unstructured.Unstructured) bool {
		return crd.GetName() == "appliedmanifestworks.work.open-cluster-management.io"
	})
	left := crds[i]
	if err := unstructured.SetNestedField(left.Object, "Namespaced", "spec", "scope"); err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, c.client, klusterlet.FieldManager, []*unstructured.Unstructured{left})
	c.run(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(left), crd); err != nil {
		t.Fatal(err)
	}
	if crd.Spec.Scope != apiextensionsv1.ClusterScoped {
		t.Errorf("scope %s", crd.Spec.Scope)
	}
}

// TestNewerCRDWithoutLabelIsLeftAlone: the operator's cache holds CRDs with its
// label only.
func TestNewerCRDWithoutLabelIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Version: "99.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, c.client, "somebody", crds)
	c.run(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	for _, newer := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(newer), crd); err != nil {
			t.Fatal(err)
		}
		if got := crd.Annotations[names.AnnotationVersion]; got != "99.0.0" {
			t.Errorf("%s was written by version %s", crd.Name, got)
		}
	}
}

// TestDeletionReportsWhatItWaitsFor holds the agents' namespace with something
// that does not go.
func TestDeletionReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.AgentNamespace, Name: "held", Finalizers: []string{"test.example/hold"},
	}}
	if err := c.client.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Delete(t.Context(), c.klusterlet(t)); err != nil {
		t.Fatal(err)
	}
	c.awaitCondition(t, "Applied", klusterlet.ReasonDeleting)
	eventually(t, "the namespace is named", func() error {
		applied := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "Applied")
		if applied.Message != "Waiting for namespace/"+names.AgentNamespace+" to be gone" {
			return errors.New(applied.Message)
		}
		return nil
	})
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Fatal(err)
	}
	held.Finalizers = nil
	if err := c.client.Update(t.Context(), held); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, "the Klusterlet goes", func() error {
		return wantGone(c.client.Get(t.Context(), client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}))
	})
}
