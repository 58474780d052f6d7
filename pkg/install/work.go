package install

import (
	"context"
	"fmt"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

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

// checkWorkRole warns about a ClusterRole that does not exist, such as one whose name
// is misspelled.
func (r *Runner) checkWorkRole(ctx context.Context, k *operatorv1.Klusterlet) ([]Finding, error) {
	permissions, err := WorkPermissions(k)
	role := permissions.ClusterRole()
	if err != nil || role == "" {
		return nil, err
	}
	live, err := getLive(ctx, r.Client, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{})
	if err != nil || live != nil {
		return nil, err
	}
	return []Finding{{
		Check: CheckWork, Severity: Warning,
		Message: fmt.Sprintf("the ClusterRole %q does not exist: the work agent has no permissions on this cluster until it does", role),
		Try:     "create it, or give --work-permissions the name of another one",
	}}, nil
}
