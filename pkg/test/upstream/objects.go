package upstream

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// registry and tag are of the images that clusteradm installs.
const (
	registry = "quay.io/open-cluster-management/"
	tag      = ":v1.3.1"
)

// OperatorImage is the image of both operators.
const OperatorImage = registry + "registration-operator" + tag

// Image is the image of a component.
func Image(component string) string { return registry + component + tag }

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)}
}

// deployment is one container that runs args.
func deployment(meta metav1.ObjectMeta, app, container, image, account string, args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": app}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, labels)
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: account,
					Containers:         []corev1.Container{{Name: container, Image: image, Args: args}},
				},
			},
		},
	}
}

// account is a ServiceAccount that may do everything.
func account(meta metav1.ObjectMeta, role string) []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role, Labels: maps.Clone(meta.Labels)},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role, Labels: maps.Clone(meta.Labels)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: meta.Name}},
		},
	}
}

// operator is what clusteradm installs for an operator.
func operator(name, container, role string, labels map[string]string) []client.Object {
	objs := []client.Object{
		&corev1.Secret{
			ObjectMeta: meta(names.OperatorNamespace, names.ImagePullSecret, map[string]string{"app": name}),
			Type:       corev1.SecretTypeDockerConfigJson,
			Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"registry.example":{"auth":"dTpw"}}}`)},
		},
	}
	objs = append(objs, account(meta(names.OperatorNamespace, name, labels), name)...)
	return append(objs, deployment(meta(names.OperatorNamespace, name, labels), name, container, OperatorImage, name, "/registration-operator", role))
}

// plant creates objects.
func plant(tb testing.TB, admin client.Client, objs []client.Object) {
	tb.Helper()
	for _, obj := range objs {
		installation.Create(tb, admin, obj)
	}
}

// crds creates the CRDs of a rendering without the marks of ours.
func crds(tb testing.TB, admin client.Client, objs []*unstructured.Unstructured, err error) {
	tb.Helper()
	for _, obj := range objs {
		obj.SetAnnotations(nil)
		obj.SetLabels(nil)
	}
	installation.Some(tb, admin, objs, err, installation.CRD)
}
