package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// aws checks what the hub's API shows of registration by AWS IAM. What is in AWS
// is "aws check hub"'s to look at.
func (h *hubScope) aws(ctx context.Context) checks.Outcome {
	spec, registers := hubspec.Of(&h.manager)
	if !registers {
		return checks.Good("this hub registers no cluster in that way")
	}
	if err := spec.Validate(hubspec.FieldNames()); err != nil {
		return checks.Bad(h.fix(h.env.Command("init --registration-auth aws-irsa --hub-cluster-arn ARN")), "%v", err)
	}
	role, err := spec.Role(hubspec.FieldNames())
	if err != nil {
		return checks.Broken(err)
	}
	if found := h.awsController(ctx, spec); found.Status != checks.OK {
		return found
	}
	if found := h.awsRole(ctx, role.String()); found.Status != checks.OK {
		return found
	}
	if found := h.awsAuth(ctx, spec); found.Status != checks.OK {
		return found
	}
	return checks.Good("hub %s with the role %s", spec.Cluster, role)
}

// awsController checks that the registration controller runs with the driver.
func (h *hubScope) awsController(ctx context.Context, spec hubspec.Spec) checks.Outcome {
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationDeployment(h.manager.Name)}
	if err := h.client.Get(ctx, key, &d); err != nil {
		return checks.Broken(err)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, "--"+hubspec.FlagCluster+"="+spec.Cluster) {
			return checks.Good("")
		}
	}
	return checks.Bad(h.env.Kubectl("describe clustermanager", h.manager.Name),
		"the registration controller %s does not run with the hub %s; the condition Applied of the ClusterManager says why", key, spec.Cluster)
}

// awsRole checks the IAM role of the registration controller's pods.
func (h *hubScope) awsRole(ctx context.Context, role string) checks.Outcome {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}
	if err := h.client.Get(ctx, key, &account); err != nil {
		return checks.Broken(err)
	}
	if got := account.Annotations[names.AnnotationAWSRole]; got != role {
		return checks.Bad(h.fix(h.env.Command("init")), "the ServiceAccount %s has the annotation %s=%q, and the role of the hub is %s",
			key, names.AnnotationAWSRole, got, role)
	}
	return checks.Good("")
}

// awsAuth checks the ConfigMap aws-auth where roles may be mapped by it.
func (h *hubScope) awsAuth(ctx context.Context, spec hubspec.Spec) checks.Outcome {
	if !spec.UsesAWSAuth() || h.other != nil {
		return checks.Good("")
	}
	err := awsauth.Store{Live: h.client}.Check(ctx)
	switch {
	case apierrors.IsNotFound(err) && spec.Mapping != string(awsirsa.MapAWSAuth):
		return checks.Good("") // A hub with access entries needs none.
	case err != nil:
		return checks.Bad("", "%v", err)
	}
	controller := types.NamespacedName{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}
	allowed, err := fleet.Allowed(ctx, h.client, controller, authorizationv1.ResourceAttributes{
		Verb: "update", Resource: "configmaps", Namespace: awsauth.Namespace, Name: awsauth.Name,
	})
	if err != nil {
		return checks.Broken(err)
	}
	if !allowed {
		return checks.Bad(h.fix(h.env.Command("init")), "the registration controller may not update the ConfigMap %s/%s", awsauth.Namespace, awsauth.Name)
	}
	return checks.Good("")
}

// shownGrants is how many clusters a check reports.
const shownGrants = 3

// grants checks whether clusters have the identities that the hub grants outside
// its own API.
func (h *hubScope) grants(ctx context.Context) checks.Outcome {
	var list clusterv1.ManagedClusterList
	if err := h.client.List(ctx, &list); err != nil {
		return checks.Broken(err)
	}
	granted := 0
	var waiting, failing []string
	for i := range list.Items {
		c := apimeta.FindStatusCondition(list.Items[i].Status.Conditions, names.ConditionRegistrationGranted)
		switch {
		case c == nil, c.Reason == names.ReasonRevoked:
		case c.Status == metav1.ConditionTrue:
			granted++
		case c.Reason == names.ReasonGrantPending:
			waiting = append(waiting, list.Items[i].Name+": "+c.Message)
		default:
			failing = append(failing, list.Items[i].Name+": "+c.Message)
		}
	}
	sum := fmt.Sprintf("%d granted, %d waiting, %d failing", granted, len(waiting), len(failing))
	told := slices.Concat(failing, waiting)
	message := strings.Join(append([]string{sum}, told[:min(shownGrants, len(told))]...), "\n")
	try := h.env.Command("check cluster NAME")
	switch {
	case len(failing) > 0:
		return checks.Bad(try, "%s", message)
	case len(waiting) > 0:
		return checks.Caution(try, "%s", message)
	case granted == 0:
		return checks.Good("no cluster has one")
	}
	return checks.Good("%s", sum)
}
