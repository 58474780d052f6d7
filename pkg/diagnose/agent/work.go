package agent

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	installed "github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// workLeftOut is why no check of a work agent is made.
const workLeftOut = "it is left out: the hub deploys nothing to this cluster"

// workAgent checks the Pods of the work agent. It connects with the credential of the
// registration agent, so the check of that connection covers both.
func (a *agent) workAgent(ctx context.Context) finding.Outcome {
	permissions, err := installed.WorkPermissions(&a.klusterlet)
	switch {
	case err != nil:
		return finding.Bad(a.fix(a.Command("join --work-permissions admin")), "%v", err)
	case permissions == "":
		return finding.Skip(workLeftOut)
	}
	name := names.WorkAgentDeployment(a.klusterlet.Name)
	var deployment appsv1.Deployment
	err = a.Client.Get(ctx, client.ObjectKey{Namespace: a.namespace(), Name: name}, &deployment)
	if err == nil && ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		return finding.Skip("it starts when the hub has accepted the cluster")
	}
	return a.Deployment(a.namespace(), name)(ctx)
}

// workPermissions reports what the hub may do on this cluster, and checks whether the work agent
// can do it.
func (a *agent) workPermissions(ctx context.Context) finding.Outcome {
	permissions, err := installed.WorkPermissions(&a.klusterlet)
	if err != nil || permissions == "" {
		return finding.Skip(workLeftOut)
	}
	describe := a.Kubectl("describe klusterlet", a.klusterlet.Name)
	user := names.ServiceAccountUser(a.namespace(), names.WorkAgentServiceAccount(a.klusterlet.Name))
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: workv1.GroupVersion.Group, Resource: "appliedmanifestworks"},
	}}
	if err := a.Client.Create(ctx, review); err != nil {
		return finding.Broken(err)
	}
	if !review.Status.Allowed {
		return finding.Bad(describe, "%s may not record what it applies", user)
	}
	role := permissions.ClusterRole()
	switch {
	case permissions.Admin():
		return finding.Good("everything, RBAC included")
	case role == "":
		return finding.Good("none but what was granted to %s", user)
	}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{}); lookup.Gone(err) {
		return finding.Bad("create it, or "+a.fix(a.Command("join --work-permissions CLUSTERROLE")), "the ClusterRole %s does not exist", role)
	} else if err != nil {
		return finding.Broken(err)
	}
	return finding.Good("those of the ClusterRole %s", role)
}
