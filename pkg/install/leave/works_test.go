//go:build linux

package leave_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/leave"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
)

// newManaged returns a managed cluster whose Klusterlet is gone: an unjoin was
// interrupted, and of the agent only the operator and what works applied is left.
func newManaged(t *testing.T) *install.Runner {
	t.Helper()
	cp := controlplane.Lease(t)
	r := installer.New(t, cp)
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: "0.0.0"})
	installation.Some(t, r.Client, crds, err, installation.CRD)
	objects, err := agent.Values{ClusterName: "cluster1", Workload: install.Workload{Image: "example/kubectl-ocm:v1"}}.Render()
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == "Klusterlet" })
	if _, err := (&apply.Applier{Client: r.Client, FieldManager: install.FieldManager}).Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	return r
}

// deployed returns the ConfigMap of a work, nil if it is gone.
func deployed(t *testing.T, c client.Client, name string) *corev1.ConfigMap {
	t.Helper()
	config := &corev1.ConfigMap{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, config)
	if lookup.Gone(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestWorksOfLeavingAgent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		removal install.Removal
		stays   bool
	}{
		{name: "deleted", removal: install.Removal{Works: install.DeleteResources}},
		{name: "orphaned", removal: install.Removal{Works: install.OrphanResources}, stays: true},
		{name: "orphaned by force", removal: install.Removal{Force: true}, stays: true},
		{name: "deleted by force", removal: install.Removal{Force: true, Works: install.DeleteResources}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newManaged(t)
			installer.ApplyWork(t, r.Client, "app", "gone")
			installed, err := agent.Runner{Runner: r}.Find(t.Context(), "cluster1")
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(installed.Works); got != "[app (owns configmaps default/app)]" {
				t.Errorf("works: %s", got)
			}
			// The agent is not removed yet, and applies another one.
			installer.ApplyWork(t, r.Client, "late", "gone")
			// Nobody said what becomes of them.
			_, err = leave.Runner{Runner: r}.Leave(t.Context(), installed, install.Removal{})
			if !isAboutWorks(err) {
				t.Errorf("got %v", err)
			}
			left, err := leave.Runner{Runner: r}.Leave(t.Context(), installed, tc.removal)
			if err != nil {
				t.Fatal(err)
			}
			if (len(left) == 2) != tc.stays {
				t.Errorf("reported %v", left)
			}
			for _, work := range []string{"app", "late"} {
				if config := settled(t, r.Client, work); (config != nil) != tc.stays {
					t.Errorf("the resource of %s is %v", work, config)
				}
			}
		})
	}
}

// settled returns the resource of a work, nil if it is gone. The work must be gone, and
// nothing may own the resource.
func settled(t *testing.T, c client.Client, work string) *corev1.ConfigMap {
	t.Helper()
	config := deployed(t, c, work)
	if config != nil && len(config.OwnerReferences) > 0 {
		t.Errorf("the resource of %s is still owned: %v", work, config.OwnerReferences)
	}
	err := c.Get(t.Context(), client.ObjectKey{Name: "hash-" + work}, &workv1.AppliedManifestWork{})
	if !lookup.Gone(err) {
		t.Errorf("the AppliedManifestWork of %s remains: %v", work, err)
	}
	return config
}

func isAboutWorks(err error) bool {
	_, ok := errors.AsType[*agent.WorksRemainError](err)
	return ok
}

// TestWorksOfOtherAgents has two agents on one cluster.
func TestWorksOfOtherAgents(t *testing.T) {
	t.Parallel()
	r := newManaged(t)
	var klusterlets [2]operatorv1.Klusterlet
	for i := range klusterlets {
		klusterlets[i].Name = fmt.Sprintf("k%d", i)
		klusterlets[i].Spec.ClusterName = fmt.Sprintf("cluster%d", i)
		if err := r.Client.Create(t.Context(), &klusterlets[i]); err != nil {
			t.Fatal(err)
		}
		installer.ApplyWork(t, r.Client, fmt.Sprintf("app%d", i), string(klusterlets[i].UID))
	}
	installed, err := agent.Runner{Runner: r}.Find(t.Context(), "cluster0")
	if err != nil || len(installed.Works) != 1 || installed.Works[0].Name != "app0" {
		t.Fatalf("works %v, %v", installed.Works, err)
	}
	if _, err := (leave.Runner{Runner: r}).Leave(t.Context(), installed, install.Removal{Works: install.DeleteResources, Purge: true}); err != nil {
		t.Fatal(err)
	}
	if deployed(t, r.Client, "app0") != nil || deployed(t, r.Client, "app1") == nil {
		t.Error("the resources of another agent were deleted, or those of the agent stayed")
	}
	operator := &appsv1.Deployment{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.KlusterletOperator}, operator); err != nil {
		t.Errorf("the operator of another agent: %v", err)
	}
}

// TestWorksThatStay is about a resource that something else keeps.
func TestWorksThatStay(t *testing.T) {
	t.Parallel()
	r := newManaged(t)
	installer.ApplyWork(t, r.Client, "app", "gone")
	config := deployed(t, r.Client, "app")
	config.Finalizers = []string{"example.com/stay"}
	if err := r.Client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	installed, err := agent.Runner{Runner: r}.Find(t.Context(), "cluster1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Step = func(_ context.Context, _ string, fn func(context.Context, install.Say) error) error {
		return fn(ctx, func(string, ...any) { cancel() })
	}
	_, err = leave.Runner{Runner: r}.Leave(ctx, installed, install.Removal{Works: install.DeleteResources})
	if text := install.Unmet(err); !strings.Contains(text, "default/app") {
		t.Errorf("got %q, %v", text, err)
	}
}
