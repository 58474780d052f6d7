package agent

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// annotate sets the annotations about the work agent. What a new one may do is
// written even if it is the default, for everyone to see.
func (w Work) annotate(wanted map[string]string, live *operatorv1.Klusterlet) {
	wanted[names.AnnotationWorkPermissions] = string(names.WorkPermissionsAdmin)
	if live != nil {
		for _, key := range []string{names.AnnotationWorkAgent, names.AnnotationWorkPermissions} {
			if value := live.Annotations[key]; value != "" {
				wanted[key] = value
			}
		}
	}
	if w.Enabled != nil {
		wanted[names.AnnotationWorkAgent] = strconv.FormatBool(*w.Enabled)
	}
	if w.Permissions != "" {
		wanted[names.AnnotationWorkPermissions] = string(w.Permissions)
	}
}

// WorkPermissions returns what the work agent of a Klusterlet may do on the cluster,
// "" if the agent is left out.
func WorkPermissions(k *operatorv1.Klusterlet) (names.WorkPermissions, error) {
	if k.Annotations[names.AnnotationWorkAgent] == "false" {
		return "", nil
	}
	permissions, err := names.ParseWorkPermissions(k.Annotations[names.AnnotationWorkPermissions])
	if err != nil {
		return "", fmt.Errorf("annotation %s of the Klusterlet %s: %w", names.AnnotationWorkPermissions, k.Name, err)
	}
	return permissions, nil
}

// checkWork warns about what a change of the work agent leaves behind, or leaves
// without effect. live may be nil.
func (r Runner) checkWork(ctx context.Context, wanted, live *operatorv1.Klusterlet) ([]install.Finding, error) {
	permissions, err := WorkPermissions(wanted)
	switch {
	case err != nil:
		return nil, err
	case permissions == "":
		return r.checkAbandoned(ctx, live)
	}
	return r.checkWorkRole(ctx, permissions.ClusterRole())
}

// checkAbandoned warns about the ManifestWorks of an agent that is left out from now on.
func (r Runner) checkAbandoned(ctx context.Context, live *operatorv1.Klusterlet) ([]install.Finding, error) {
	if live == nil {
		return nil, nil
	}
	var all operatorv1.KlusterletList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("klusterlets: %w", err)
	}
	works, err := Works(ctx, r.Client, live, all.Items)
	if err != nil || len(works) == 0 {
		return nil, err
	}
	return []install.Finding{{
		Check: install.CheckWork, Severity: install.Warning,
		Message: fmt.Sprintf("%v: without a work agent their resources stay as they are, and the hub cannot delete them", &WorksRemainError{Works: works}),
		Try:     "delete them on the hub before you leave the work agent out",
	}}, nil
}

// checkWorkRole warns about a ClusterRole that does not exist, such as one whose name
// is misspelled.
func (r Runner) checkWorkRole(ctx context.Context, role string) ([]install.Finding, error) {
	if role == "" {
		return nil, nil
	}
	live, hidden, err := lookup.GetReadable(ctx, r.Client, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{})
	if err != nil || live != nil {
		return nil, err
	}
	if hidden {
		return []install.Finding{{
			Check: install.CheckWork, Severity: install.Warning,
			Message: fmt.Sprintf("whether the ClusterRole %q exists is not known: it cannot be read", role),
			Try:     "run the command with permission to get clusterroles",
		}}, nil
	}
	return []install.Finding{{
		Check: install.CheckWork, Severity: install.Warning,
		Message: fmt.Sprintf("the ClusterRole %q does not exist: the work agent has no permissions on this cluster until it does", role),
		Try:     "create it, or give --work-permissions the name of another one",
	}}, nil
}

// awaitWork waits until the work agent runs, unless it is left out. Before the hub has
// accepted the cluster it has no pods.
func (r Runner) awaitWork(ctx context.Context) error {
	live, err := lookup.Klusterlet(ctx, r.Client)
	if err != nil || live == nil {
		return err
	}
	if permissions, err := WorkPermissions(live); err != nil || permissions == "" {
		return err
	}
	return r.Await(ctx, "Waiting for the work agent",
		apply.Target{Object: named(live.Name), Check: apply.Condition("Applied", "True")},
		apply.Target{
			Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: lookup.Namespace(live), Name: names.WorkAgentDeployment(live.Name)}},
			Check:  apply.Conditions(started, apply.DeploymentReady()),
		})
}

// started is done when a Deployment is to have pods.
func started(obj *unstructured.Unstructured) apply.Result {
	if obj == nil {
		return apply.Result{Message: "does not exist yet"}
	}
	if replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); replicas == 0 {
		return apply.Result{Message: "has no pods yet: the operator starts it when the hub has accepted the cluster"}
	}
	return apply.Result{Done: true}
}
