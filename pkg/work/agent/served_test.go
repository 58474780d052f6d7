package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

const gear = `
apiVersion: GROUP/v1beta1
kind: Gear
metadata: {name: NAME, namespace: NS}
spec: {teeth: 1}`

// testServedVersion has a cluster stop serving the version in which objects were applied.
// They are deleted all the same when they leave the work, and released when it orphans them.
func testServedVersion(t *testing.T, p *place) {
	t.Helper()
	group := p.cluster + ".test.example.com"
	crd := gears(group, true)
	if err := p.managed.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	p.permitAll(t, group)
	p.start(t)
	manifests := func(objects ...string) string {
		var all []string
		for _, name := range objects {
			all = append(all, strings.NewReplacer("GROUP", group, "NAME", name).Replace(gear))
		}
		return strings.Join(append(all, oneMap), "\n---\n")
	}
	work := p.create(t, "app", manifests("left", "orphaned"))
	p.reaches(t, work, "Applied=True", "Available=True")
	orphans := p.create(t, "orphans", strings.NewReplacer("GROUP", group, "NAME", "released").Replace(gear))
	p.reaches(t, orphans, "Applied=True", "Available=True")

	await.Success(t, patience, "v1beta1 is not served any more", func(ctx context.Context) error {
		if err := p.managed.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Spec.Versions = gears(group, false).Spec.Versions
		return p.managed.Update(ctx, crd)
	})
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap) })
	p.change(t, orphans, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	})
	if err := p.hub.Delete(t.Context(), orphans); err != nil {
		t.Fatal(err)
	}
	p.gone(t, orphans)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.records(t, work, "one")
	await.Success(t, patience, "only what was released is left", func(ctx context.Context) error {
		left := &unstructured.UnstructuredList{}
		left.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "GearList"})
		if err := p.managed.List(ctx, left, client.InNamespace(p.cluster)); err != nil {
			return err
		}
		if len(left.Items) != 1 || left.Items[0].GetName() != "released" || len(left.Items[0].GetOwnerReferences()) != 0 {
			return fmt.Errorf("there are %v", left.Items)
		}
		return nil
	})
}

// gears is a kind of two versions, of which one may be served no more.
func gears(group string, beta bool) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: served, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gears." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gear", Plural: "gears", Singular: "gear", ListKind: "GearList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", beta, false), version("v1", true, true)},
		},
	}
}
