package setup

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// hubCheck checks a hub.
type hubCheck struct {
	driver.CheckScope

	manager *operatorv1.ClusterManager
}

// CheckHub implements driver.Checker.
func (Setup) CheckHub(scope driver.CheckScope, manager *operatorv1.ClusterManager) []finding.Step {
	return []finding.Step{{Name: "EKS clusters can register by AWS IAM", Run: hubCheck{scope, manager}.registers}}
}

// registers checks what the hub's API shows of registration by AWS IAM. "aws check hub"
// checks what is in AWS.
func (h hubCheck) registers(ctx context.Context) finding.Outcome {
	spec, registers := hubspec.Of(h.manager)
	if !registers {
		return finding.Good("this hub registers no cluster in that way")
	}
	if err := spec.Validate(hubspec.FieldNames()); err != nil {
		return finding.Bad(h.Fix(h.Command("init --registration-auth aws-irsa --hub-cluster-arn ARN")), "%v", err)
	}
	creator, err := spec.Role(hubspec.FieldNames())
	if err != nil {
		return finding.Broken(err)
	}
	if found := h.controller(ctx, spec); found.Status != finding.OK {
		return found
	}
	if found := h.role(ctx, creator.String()); found.Status != finding.OK {
		return found
	}
	if found := h.awsAuth(ctx, spec); found.Status != finding.OK {
		return found
	}
	return finding.Good("hub %s with the role %s", spec.Cluster, creator)
}

// controller checks that the registration controller runs with the driver.
func (h hubCheck) controller(ctx context.Context, spec hubspec.Spec) finding.Outcome {
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationDeployment(h.manager.Name)}
	if err := h.Client.Get(ctx, key, &d); err != nil {
		return finding.Broken(err)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, "--"+hubspec.FlagCluster+"="+spec.Cluster) {
			return finding.Good("")
		}
	}
	return finding.Bad(h.Kubectl("describe clustermanager", h.manager.Name),
		"the registration controller %s does not run with the hub %s; the condition Applied of the ClusterManager says why", key, spec.Cluster)
}

// role checks the IAM role of the registration controller's pods.
func (h hubCheck) role(ctx context.Context, role string) finding.Outcome {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}
	if err := h.Client.Get(ctx, key, &account); err != nil {
		return finding.Broken(err)
	}
	if got := account.Annotations[identity.AnnotationRole]; got != role {
		return finding.Bad(h.Fix(h.Command("init")), "the ServiceAccount %s has the annotation %s=%q, and the role of the hub is %s",
			key, identity.AnnotationRole, got, role)
	}
	return finding.Good("")
}

// awsAuth checks the ConfigMap aws-auth where roles may be mapped by it.
func (h hubCheck) awsAuth(ctx context.Context, spec hubspec.Spec) finding.Outcome {
	if !spec.UsesAWSAuth() || h.Foreign() {
		return finding.Good("")
	}
	err := awsauth.Store{Live: h.Client}.Check(ctx)
	switch {
	case apierrors.IsNotFound(err) && spec.Mapping != string(awsirsa.MapAWSAuth):
		return finding.Good("") // A hub with access entries needs none.
	case err != nil:
		return finding.Bad("", "%v", err)
	}
	account := types.NamespacedName{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}
	allowed, err := h.Allowed(ctx, account, authorizationv1.ResourceAttributes{
		Verb: "update", Resource: "configmaps", Namespace: awsauth.Namespace, Name: awsauth.Name,
	})
	if err != nil {
		return finding.Broken(err)
	}
	if !allowed {
		return finding.Bad(h.Fix(h.Command("init")), "the registration controller may not update the ConfigMap %s/%s", awsauth.Namespace, awsauth.Name)
	}
	return finding.Good("")
}
