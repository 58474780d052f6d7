//go:build linux

package cmd_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestPullSecretsOfPreset: list and refresh look at the pull secrets that the
// installed controller renews, and at those of OpenShift's own controllers only where
// no controller is installed.
func TestPullSecretsOfPreset(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	config := "--kubeconfig=" + kubeconfig(t, cp)
	createPullSecrets(t, admin)
	expect := func(installed string, want ...string) {
		t.Helper()
		for _, command := range []string{"list -A -o name", "refresh --all --dry-run=client"} {
			r := ocm(t, append(append([]string{"pull-secrets"}, strings.Fields(command)...), config)...)
			if r.code != 0 || strings.Count(r.out, "\n") != len(want) {
				t.Errorf("%s, %s: exit code %d: %s%s", installed, command, r.code, r.out, r.err)
			}
			for _, secret := range want {
				if !strings.Contains(r.out, secret) {
					t.Errorf("%s: %s does not name %s: %s", installed, command, secret, r.out)
				}
			}
		}
	}
	expect("no controller", "app-generic", "app-openshift")

	if r := ocm(t, "pull-secrets", "install", config, "--registry=registry.example.com", "--audience=registry"); r.code != 0 {
		t.Fatalf("install: exit code %d: %s", r.code, r.err)
	}
	expect("a generic controller", "app-generic")

	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: names.ImagePullNamespace, Name: names.ImagePullDeployment}
	if err := admin.Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	base := deployment.DeepCopy()
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--preset=openshift")
	if err := admin.Patch(t.Context(), &deployment, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	expect("a controller with OpenShift's preset", "app-openshift")
}

// createPullSecrets creates a ServiceAccount with a pull secret of either form.
func createPullSecrets(t *testing.T, admin client.Client) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	if err := admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}}
	for _, secret := range []*corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "app-generic", OwnerReferences: owner,
			Labels:      map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
			Annotations: map[string]string{names.AnnotationPullSecretAccount: account.Name},
		},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	}, {
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "app-openshift", OwnerReferences: owner,
			Annotations: map[string]string{
				names.AnnotationOpenShiftAccount: account.Name,
				names.AnnotationOpenShiftBinding: names.OpenShiftBound,
			},
		},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
	}} {
		if err := admin.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
}
