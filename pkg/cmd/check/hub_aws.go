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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// aws checks what the hub's API shows of registration by AWS IAM. What is in AWS
// is "aws check hub"'s to look at.
func (h *hubScope) aws(ctx context.Context) (status, string, string) {
	spec, registers := hubspec.Of(&h.manager)
	if !registers {
		return good("this hub registers no cluster in that way")
	}
	if err := spec.Validate(hubspec.FieldNames()); err != nil {
		return bad(h.fix(h.env.Command("init --registration-auth aws-irsa --hub-cluster-arn ARN")), "%v", err)
	}
	role, err := spec.Role(hubspec.FieldNames())
	if err != nil {
		return broken(err)
	}
	for _, look := range []func() (status, string, string){
		func() (status, string, string) { return h.awsController(ctx, spec) },
		func() (status, string, string) { return h.awsRole(ctx, role.String()) },
		func() (status, string, string) { return h.awsAuth(ctx, spec) },
	} {
		if st, message, try := look(); st != ok {
			return st, message, try
		}
	}
	return good("hub %s with the role %s", spec.Cluster, role)
}

// awsController checks that the registration controller runs with the driver.
func (h *hubScope) awsController(ctx context.Context, spec hubspec.Spec) (status, string, string) {
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationDeployment(h.manager.Name)}
	if err := h.client.Get(ctx, key, &d); err != nil {
		return broken(err)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, "--"+hubspec.FlagCluster+"="+spec.Cluster) {
			return good("")
		}
	}
	return bad(h.env.Kubectl("describe clustermanager", h.manager.Name),
		"the registration controller %s does not run with the hub %s; the condition Applied of the ClusterManager says why", key, spec.Cluster)
}

// awsRole checks the IAM role of the registration controller's pods.
func (h *hubScope) awsRole(ctx context.Context, role string) (status, string, string) {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}
	if err := h.client.Get(ctx, key, &account); err != nil {
		return broken(err)
	}
	if got := account.Annotations[names.AnnotationAWSRole]; got != role {
		return bad(h.fix(h.env.Command("init")), "the ServiceAccount %s has the annotation %s=%q, and the role of the hub is %s",
			key, names.AnnotationAWSRole, got, role)
	}
	return good("")
}

// awsAuth checks the ConfigMap aws-auth where roles may be mapped by it.
func (h *hubScope) awsAuth(ctx context.Context, spec hubspec.Spec) (status, string, string) {
	if !hubspec.UsesAWSAuth(&h.manager) || h.other != nil {
		return good("")
	}
	err := awsauth.Store{Live: h.client}.Check(ctx)
	switch {
	case apierrors.IsNotFound(err) && spec.Mapping != string(awsirsa.MapAWSAuth):
		return good("") // A hub with access entries needs none.
	case err != nil:
		return bad("", "%v", err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "update", Resource: "configmaps", Namespace: awsauth.Namespace, Name: awsauth.Name,
		},
	}}
	if err := h.client.Create(ctx, review); err != nil {
		return broken(err)
	}
	if !review.Status.Allowed {
		return bad(h.fix(h.env.Command("init")), "the registration controller may not update the ConfigMap %s/%s", awsauth.Namespace, awsauth.Name)
	}
	return good("")
}

// shownGrants is how many clusters a check reports.
const shownGrants = 3

// grants checks whether clusters have the identities that the hub grants outside
// its own API.
func (h *hubScope) grants(ctx context.Context) (status, string, string) {
	var list clusterv1.ManagedClusterList
	if err := h.client.List(ctx, &list); err != nil {
		return broken(err)
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
		return bad(try, "%s", message)
	case len(waiting) > 0:
		return caution(try, "%s", message)
	case granted == 0:
		return good("no cluster has one")
	}
	return good("%s", sum)
}
