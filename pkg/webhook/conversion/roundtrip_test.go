package conversion_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

var (
	alpha = schema.GroupVersion{Group: conversion.Group, Version: conversion.V1alpha1}
	beta  = schema.GroupVersion{Group: conversion.Group, Version: conversion.V1beta1}
)

// other is the version that an object does not have.
func other(obj *unstructured.Unstructured) schema.GroupVersion {
	if obj.GroupVersionKind().Version == conversion.V1alpha1 {
		return beta
	}
	return alpha
}

func convert(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	before := obj.DeepCopy()
	out, err := conversion.Convert(obj, other(obj))
	if err != nil {
		t.Fatalf("%v in %s", err, dump(t, obj.Object))
	}
	if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
		t.Fatalf("the input was modified (-before +after):\n%s", diff)
	}
	return out
}

func dump(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// expectRoundTrip converts there and back.
func expectRoundTrip(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	there := convert(t, obj)
	if got := there.GroupVersionKind(); got != other(obj).WithKind(obj.GetKind()) {
		t.Fatalf("converted to %v", got)
	}
	back := convert(t, there)
	if diff := cmp.Diff(obj.Object, back.Object); diff != "" {
		t.Fatalf("there and back is another object (-want +got):\n%s\nthere:\n%s", diff, dump(t, there.Object))
	}
	if diff := cmp.Diff(there.Object, convert(t, back).Object); diff != "" {
		t.Fatalf("the second time is different (-first +second):\n%s", diff)
	}
}

// TestRoundTrip converts random add-ons of both kinds in both directions.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		for _, obj := range randomObjects(t, filler(randfill.NewWithSeed(seed))) {
			expectRoundTrip(t, obj)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed int64) {
		for _, obj := range randomObjects(t, filler(randfill.NewWithSeed(seed))) {
			expectRoundTrip(t, obj)
		}
	})
}

// filler makes random add-ons in which the cases that the versions treat
// differently are frequent.
func filler(f *randfill.Filler) *randfill.Filler {
	text := func(c randfill.Continue, of ...string) string { return of[c.Intn(len(of))] }
	return f.NilChance(0.3).NumElements(0, 4).MaxDepth(20).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name, m.Namespace = "addon", text(c, "", "cluster1")
			if c.Bool() {
				m.Annotations = map[string]string{"mine": c.String(10)}
			}
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody", Operation: "Update"}}
		},
		func(o *metav1.Time, _ randfill.Continue) { *o = metav1.Unix(1700000000, 0) },
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte("{}") },
		func(s *addonv1alpha1.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(s)
			//nolint:staticcheck // The deprecated fields are what is converted.
			s.SignerName, s.Subject.User, s.Subject.Groups = text(c, certificatesv1.KubeAPIServerClientSignerName, "example.com/signer", ""), text(c, "a", "b"), nil
		},
		func(s *addonv1beta1.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Type = addonv1beta1.RegistrationType(text(c, "kubeClient", "kubeClient", "customSigner", "grpc"))
			if s.KubeClient != nil {
				s.KubeClient.Driver = text(c, "", "csr", "token")
				s.KubeClient.Subject.User = text(c, "a", "b")
				s.KubeClient.Subject.Groups = nil
			}
			if s.CustomSigner != nil {
				s.CustomSigner.SignerName = text(c, certificatesv1.KubeAPIServerClientSignerName, "example.com/signer")
				s.CustomSigner.Subject.Groups = nil
				s.CustomSigner.Subject.User = text(c, "a", "b")
			}
		},
		func(r *addonv1alpha1.ConfigReferent, c randfill.Continue) {
			r.Name, r.Namespace = text(c, "one", "two", names.ReservedNoDefaultConfig), text(c, "", "ns")
		},
		func(r *addonv1beta1.ConfigReferent, c randfill.Continue) {
			r.Name, r.Namespace = text(c, "one", "two", names.ReservedNoDefaultConfig, ""), text(c, "", "ns")
		},
		func(r *addonv1alpha1.ConfigGroupResource, c randfill.Continue) {
			r.Group, r.Resource = text(c, "g", "h"), "r"
		},
		func(r *addonv1beta1.ConfigGroupResource, c randfill.Continue) {
			r.Group, r.Resource = text(c, "g", "h"), "r"
		},
	)
}

// randomObjects are the two kinds in the two versions, with fields that no
// version knows.
func randomObjects(t *testing.T, f *randfill.Filler) []*unstructured.Unstructured {
	t.Helper()
	var objs []*unstructured.Unstructured
	add := func(gv schema.GroupVersion, kind string, typed any) {
		data, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
			t.Fatal(err)
		}
		obj.SetGroupVersionKind(gv.WithKind(kind))
		addUnknown(f, obj.Object)
		objs = append(objs, obj)
	}
	var (
		mcaAlpha addonv1alpha1.ManagedClusterAddOn
		mcaBeta  addonv1beta1.ManagedClusterAddOn
		cmaAlpha addonv1alpha1.ClusterManagementAddOn
		cmaBeta  addonv1beta1.ClusterManagementAddOn
	)
	f.Fill(&mcaAlpha)
	add(alpha, "ManagedClusterAddOn", &mcaAlpha)
	f.Fill(&mcaBeta)
	var namespace string
	if f.Fill(&namespace); namespace != "" {
		metav1.SetMetaDataAnnotation(&mcaBeta.ObjectMeta, names.AnnotationInstallNamespace, namespace)
	}
	add(beta, "ManagedClusterAddOn", &mcaBeta)
	f.Fill(&cmaAlpha)
	add(alpha, "ClusterManagementAddOn", &cmaAlpha)
	f.Fill(&cmaBeta)
	add(beta, "ClusterManagementAddOn", &cmaBeta)
	return objs
}

// addUnknown puts fields of a later version of the API into an object here and
// there.
func addUnknown(f *randfill.Filler, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if key != "metadata" {
				addUnknown(f, child)
			}
		}
		var n uint8
		if f.Fill(&n); n%4 == 0 {
			v["later"] = map[string]any{"n": int64(n)}
		}
	case []any:
		for _, child := range v {
			addUnknown(f, child)
		}
	}
}

// FuzzForgedCarrier puts any text into the carriers. It must never change what
// the version that the object is written in says.
func FuzzForgedCarrier(f *testing.F) {
	f.Add(int64(1), `{"registrations":[{"type":"customSigner","customSigner":{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"a"}}}]}`)
	f.Add(int64(2), `{"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"a","organizationUnit":["x"]}}],"kubeClientDriver":"token"}`)
	f.Add(int64(3), `{"configReferences":[null,{"name":7}],"addOnConfiguration":[],"defaultConfigs":[{"name":"__reserved_no_default__","namespace":"x"}]}`)
	f.Add(int64(4), `{"registrations":"no list"`)
	f.Fuzz(func(t *testing.T, seed int64, carrier string) {
		for _, obj := range randomObjects(t, filler(randfill.NewWithSeed(seed))) {
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[names.AnnotationCarriesV1alpha1] = carrier
			annotations[names.AnnotationCarriesV1beta1] = carrier
			obj.SetAnnotations(annotations)
			there := convert(t, obj)
			back := convert(t, there)
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(obj.Object[part], back.Object[part]); diff != "" {
					t.Fatalf("%s changed (-want +got):\n%s\nthere:\n%s", part, diff, dump(t, there.Object))
				}
			}
		}
	})
}
