package kubelet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	configv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const patience = await.Patience

var settings = kubelet.Settings{Registries: []string{"registry.example.com", "*.registry.example.com:5000"}, Audience: "https://registry.example.com", Username: "user"}

// TestTheKubeletReadsTheConfiguration decodes as the kubelet does, strictly.
func TestTheKubeletReadsTheConfiguration(t *testing.T) {
	t.Parallel()
	data, err := yaml.Marshal(settings.Config())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	config, ok := object.(*configv1.CredentialProviderConfig)
	if !ok || len(config.Providers) != 1 {
		t.Fatalf("%T %s", object, data)
	}
	provider := config.Providers[0]
	if provider.TokenAttributes == nil || provider.TokenAttributes.ServiceAccountTokenAudience != settings.Audience ||
		provider.TokenAttributes.RequireServiceAccount == nil || provider.DefaultCacheDuration == nil || len(provider.MatchImages) != 2 {
		t.Errorf("%s", data)
	}
}

// TestNodesNeedThePermission: the API server gives a node tokens for the audience
// with the permission, and not without.
func TestNodesNeedThePermission(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	const node = "node-1"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"},
		Spec: corev1.PodSpec{
			ServiceAccountName: account.Name, NodeName: node,
			Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app"}},
		},
	}
	for _, object := range []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, account, pod} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	asNode := cp.ClientFor(t, cp.ConfigFor(t, "system:node:"+node, "system:nodes", "system:authenticated"))
	ask := func(ctx context.Context) (string, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{settings.Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		err := asNode.SubResource("token").Create(ctx, account.DeepCopy(), request)
		return request.Status.Token, err
	}
	await.Completion(t, patience, func(ctx context.Context) string { // The node authorizer has to see the Pod first.
		if _, err := ask(ctx); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not authorized to request tokens for this audience") {
			return "without the permission: " + errorText(err)
		}
		return ""
	})
	role, binding := settings.Permission()
	for _, object := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	var issued string
	await.Success(t, patience, "the node gets a token", func(ctx context.Context) (err error) {
		issued, err = ask(ctx)
		return err
	})
	var out strings.Builder
	if err := kubelet.Answer(strings.NewReader(request("registry.example.com/app", issued)), &out, "user", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), issued) {
		t.Error("the answer is without the token")
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
