package takeover_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// disguise makes an installation of ours one of OCM: its data stays, what runs is
// OCM's, and nothing has our marks. It returns what OCM's operator applies.
func disguise(t *testing.T, c client.Client, operator, namespace, label string, theirs []client.Object) []client.Object {
	t.Helper()
	removeDeployments(t, c, names.OperatorNamespace, client.MatchingLabels{"app": operator})
	removeDeployments(t, c, namespace)
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		each(t, c, list, client.HasLabels{label}, func(obj client.Object) error { return c.Delete(t.Context(), obj) })
	}
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		&corev1.ServiceList{}, &apiextensionsv1.CustomResourceDefinitionList{},
	} {
		each(t, c, list, client.HasLabels{label}, func(obj client.Object) error { return unmark(t, c, obj) })
	}
	for _, obj := range theirs {
		adapt(t, c, obj)
	}
	plant(t, c, theirs, isComponent)
	each(t, c, &appsv1.DeploymentList{}, client.InNamespace(namespace), func(obj client.Object) error { return awaitAvailable(t, c, obj) })
	plant(t, c, theirs, isHook)
	return theirs
}

// each does something with every object of a list.
func each(t *testing.T, c client.Client, list client.ObjectList, selected client.ListOption, do func(client.Object) error) {
	t.Helper()
	if err := c.List(t.Context(), list, selected); err != nil {
		t.Fatal(err)
	}
	err := apimeta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T", item)
		}
		return do(obj)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// removeDeployments deletes Deployments with their pods.
func removeDeployments(t *testing.T, c client.Client, namespace string, options ...client.ListOption) {
	t.Helper()
	var list appsv1.DeploymentList
	options = append(options, client.InNamespace(namespace))
	if err := c.List(t.Context(), &list, options...); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if err := c.Delete(t.Context(), &list.Items[i], client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the Deployments in "+namespace+" are gone", func(ctx context.Context) error {
		if err := c.List(ctx, &list, options...); err != nil || len(list.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d are left", len(list.Items))
	})
}

// unmark takes our annotations off; CRDs get OCM's.
func unmark(t *testing.T, c client.Client, obj client.Object) error {
	t.Helper()
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T", obj)
	}
	annotations := obj.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, "applied.open-cluster-management.io/") {
			delete(annotations, key)
		}
	}
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		annotations[names.AnnotationVersion] = "1.3.1"
	}
	obj.SetAnnotations(annotations)
	return c.Patch(t.Context(), obj, client.MergeFrom(before))
}

// adapt makes an object of OCM run on a local cluster.
func adapt(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("%T", obj)
	}
	switch kind := u.GetKind(); {
	case kind == "Deployment":
		adaptDeployment(t, c, u)
	case kind == "Service":
		ports := []any{map[string]any{"name": "webhook", "port": int64(9443), "targetPort": int64(9443)}}
		_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
	case isHook(u):
		var bundle corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: names.HubNamespace, Name: names.CABundleConfigMap}, &bundle); err != nil {
			t.Fatal(err)
		}
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, hook := range hooks {
			if m, ok := hook.(map[string]any); ok {
				_ = unstructured.SetNestedField(m, base64.StdEncoding.EncodeToString([]byte(bundle.Data[names.KeyCABundle])), "clientConfig", "caBundle")
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, hooks, "webhooks")
	}
}

func isHook(obj client.Object) bool {
	return strings.HasSuffix(obj.GetObjectKind().GroupVersionKind().Kind, "WebhookConfiguration")
}

// adaptDeployment gives the placeholder its address, and a webhook its certificate.
func adaptDeployment(t *testing.T, c client.Client, d *unstructured.Unstructured) {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	container, ok := containers[0].(map[string]any)
	if !ok {
		t.Fatal(containers)
	}
	container["env"] = []any{map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}}
	if service, ok := strings.CutSuffix(d.GetName(), "-webhook"); ok {
		secret := strings.TrimPrefix(service, "cluster-manager-") + "-webhook-serving-cert"
		certify(t, c, secret, d.GetName())
		container["ports"] = []any{map[string]any{"containerPort": int64(9443)}}
		container["readinessProbe"] = map[string]any{"tcpSocket": map[string]any{"port": int64(9443)}, "periodSeconds": int64(1)}
		container["volumeMounts"] = []any{map[string]any{"name": "certs", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true}}
		volumes := []any{map[string]any{"name": "certs", "secret": map[string]any{"secretName": secret}}}
		_ = unstructured.SetNestedSlice(d.Object, volumes, "spec", "template", "spec", "volumes")
	}
	_ = unstructured.SetNestedSlice(d.Object, containers, "spec", "template", "spec", "containers")
}

// certify issues what a webhook of OCM serves with, unless it has that.
func certify(t *testing.T, c client.Client, secret, service string) {
	t.Helper()
	var ca corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: names.HubNamespace, Name: "signer-secret"}, &ca); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := clock.RealClock{}.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: service}, DNSNames: []string{service + "." + names.HubNamespace + ".svc"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.HubNamespace, Name: secret}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pemutil.EncodeCertificate(der), corev1.TLSPrivateKeyKey: keyPEM},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func isComponent(obj client.Object) bool { return !isHook(obj) }

// plant creates some of the objects, and gives the operator's resource OCM's images.
func plant(t *testing.T, c client.Client, objs []client.Object, some func(client.Object) bool) {
	t.Helper()
	for _, obj := range objs {
		if !some(obj) {
			continue
		}
		wanted, ok := obj.DeepCopyObject().(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%T", obj)
		}
		err := c.Create(t.Context(), wanted)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind == "ClusterManager" || kind == "Klusterlet" {
			giveImages(t, c, obj)
		}
	}
}

// giveImages gives the operator's resource the images of OCM.
func giveImages(t *testing.T, c client.Client, theirs client.Object) {
	t.Helper()
	u, ok := theirs.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("%T", theirs)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(live.DeepCopy())
	for _, field := range []string{
		"registrationImagePullSpec", "workImagePullSpec", "placementImagePullSpec", "addOnManagerImagePullSpec", "imagePullSpec",
	} {
		if image, ok, _ := unstructured.NestedString(u.Object, "spec", field); ok {
			_ = unstructured.SetNestedField(live.Object, image, "spec", field)
		}
	}
	if err := c.Patch(t.Context(), live, patch); err != nil {
		t.Fatal(err)
	}
}

// awaitAvailable waits until a Deployment has all its pods.
func awaitAvailable(t *testing.T, c client.Client, obj client.Object) error {
	t.Helper()
	eventually(t, obj.GetName()+" is available", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), &d); err != nil {
			return err
		}
		if d.Status.AvailableReplicas == 0 || d.Status.ObservedGeneration < d.Generation {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
	return nil
}

// operate simulates OCM's operator, whose Deployment decides whether it runs.
func operate(t *testing.T, c client.Client, operator string, theirs []client.Object) {
	t.Helper()
	upstream.Operate(t, c, operator, theirs)
}
