package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

const followPoll = 20 * time.Millisecond

// probeName begins the names of what a reset itself makes, and its next round removes.
const probeName = "pool-probe-"

// follow returns when what the API server decides by follows the store after a reset.
// Authorization and admission decide by caches that their watches fill in order: once
// a probe that was made after the reset has its effect, so has the reset.
func (p *Plane) follow(ctx context.Context, changed []string) error {
	config, err := p.Access().ConfigFor(localplane.AdminUser, localplane.AdminGroup)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	probe := probe{Interface: clients, name: probeName + rand.String(8)}
	if touches(changed, "clusterroles/", "clusterrolebindings/", "roles/", "rolebindings/") {
		if err := probe.authorization(ctx); err != nil {
			return fmt.Errorf("authorization does not follow a reset: %w", err)
		}
	}
	if touches(changed, "validatingadmissionpolicies/", "validatingadmissionpolicybindings/") {
		if err := probe.admission(ctx); err != nil {
			return fmt.Errorf("admission does not follow a reset: %w", err)
		}
	}
	return nil
}

// touches says that objects of a resource changed, those of a probe aside.
func touches(changed []string, resources ...string) bool {
	return slices.ContainsFunc(changed, func(key string) bool {
		return !strings.Contains(key, "/"+probeName) && slices.ContainsFunc(resources, func(resource string) bool {
			return strings.HasPrefix(key, registry+resource)
		})
	})
}

// probe is objects of one name that have an effect as soon as the API server knows them.
type probe struct {
	kubernetes.Interface

	name string
}

// authorization gives a user two rights, each by a role and a binding of its own, and
// waits for both.
func (p probe) authorization(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: p.name}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{p.name}, Verbs: []string{"get"}}}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.name}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: p.name}
	}
	rbac, in := p.RbacV1(), metav1.NamespaceDefault
	_, clusterRole := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: []string{p.name}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	_, clusterBinding := rbac.ClusterRoleBindings().Create(ctx,
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref("ClusterRole"), Subjects: subjects}, metav1.CreateOptions{})
	_, role := rbac.Roles(in).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, binding := rbac.RoleBindings(in).Create(ctx,
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref("Role"), Subjects: subjects}, metav1.CreateOptions{})
	if err := errors.Join(clusterRole, clusterBinding, role, binding); err != nil {
		return err
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Resource: "nodes", Name: p.name, Verb: "get"},
		{Resource: "configmaps", Namespace: in, Name: p.name, Verb: "get"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: p.name, ResourceAttributes: &right}}
		if err := wait.PollUntilContextCancel(ctx, followPoll, true, func(ctx context.Context) (bool, error) {
			got, err := p.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && got.Status.Allowed, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// admission has a policy deny one ConfigMap, and waits until it does.
func (p probe) admission(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: p.name}
	only := []admissionregistrationv1.NamedRuleWithOperations{{
		ResourceNames: []string{p.name},
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}
	policies := p.AdmissionregistrationV1()
	_, policy := policies.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: only},
			Validations:      []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}, metav1.CreateOptions{})
	_, binding := policies.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err := errors.Join(policy, binding); err != nil {
		return err
	}
	denied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: p.name}}
	return wait.PollUntilContextCancel(ctx, followPoll, true, func(ctx context.Context) (bool, error) {
		_, err := p.CoreV1().ConfigMaps(denied.Namespace).Create(ctx, denied, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}
