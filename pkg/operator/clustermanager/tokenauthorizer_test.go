package clustermanager_test

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
)

// TestTokenAuthorizer switches the token authorizer on and off.
func TestTokenAuthorizer(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.makePodsReady(t)
	expectGone(t, h)

	h.annotate(t, `{"`+names.AnnotationTokenAuthorizer+`":"true"}`)
	h.expectCondition(t, clustermanager.ConditionHubTokenAuthorizerDegraded, metav1.ConditionTrue, clustermanager.ReasonUnavailableTokenAuthorizerPod)
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
	h.makeReady(t, key)
	h.expectCondition(t, clustermanager.ConditionHubTokenAuthorizerDegraded, metav1.ConditionFalse, clustermanager.ReasonTokenAuthorizerFunctional)
	expectObject(t, h, key, &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		if *d.Spec.Replicas < 2 {
			return "there is one replica"
		}
		return servedWith(d, names.TokenAuthorizerServingCertSecret)
	})
	expectQuiet(t, op)

	h.annotate(t, `{"`+names.AnnotationTokenAuthorizerTLS+`":"mine","`+names.AnnotationTokenService+`":"true"}`)
	expectObject(t, h, key, &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		if !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--sts") {
			return "there is no token service"
		}
		return servedWith(d, "mine")
	})

	h.annotate(t, `{"`+names.AnnotationTokenAuthorizer+`":null}`)
	eventually(t, func(ctx context.Context) string { return left(ctx, h) })
	eventually(t, func(ctx context.Context) string {
		cm := &operatorv1.ClusterManager{}
		if err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, cm); err != nil {
			return err.Error()
		}
		if c := apimeta.FindStatusCondition(cm.Status.Conditions, clustermanager.ConditionHubTokenAuthorizerDegraded); c != nil {
			return "there is still a condition: " + c.Message
		}
		return ""
	})
	expectQuiet(t, op)
}

func (h *hub) annotate(t *testing.T, annotations string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":`+annotations+`}}`))
	if err := h.admin.Patch(t.Context(), h.clusterManager(t), patch); err != nil {
		t.Fatal(err)
	}
}

// servedWith says what is wrong with the volume of what the pods serve with.
func servedWith(d *appsv1.Deployment, secret string) string {
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == secret {
			return ""
		}
	}
	return "the pods do not mount the Secret " + secret
}

func expectGone(t *testing.T, h *hub) {
	t.Helper()
	if found := left(t.Context(), h); found != "" {
		t.Error(found)
	}
}

// left says what there is of a token authorizer.
func left(ctx context.Context, h *hub) string {
	role := "open-cluster-management:" + names.ClusterManagerName + "-token-authorizer"
	for _, obj := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizer}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizer}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizer}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizer}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizer}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: role}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}},
	} {
		key := client.ObjectKey{Namespace: names.HubNamespace, Name: obj.GetName()}
		if err := h.admin.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
			return "there is a " + key.String()
		}
	}
	for _, obj := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		if err := h.admin.Get(ctx, client.ObjectKey{Name: role}, obj); !apierrors.IsNotFound(err) {
			return "there is a " + role
		}
	}
	return ""
}
