package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// filled are objects of which controllers fill in what the manifests do not say, or only
// seem to say.
const filled = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-part, labels: {example.com/sum: NS}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-sum}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example.com/sum: NS}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-sum-empty, labels: {change: CHANGE}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example.com/sum: NS}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS-sum-null, labels: {change: CHANGE}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {example.com/sum: NS}}]}
rules: null
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS, labels: {change: CHANGE}}
webhooks:
- name: check.filled.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: hook, namespace: NS, path: /check}}
  rules: [{apiGroups: [filled.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: trusted, namespace: NS, labels: {change: CHANGE}}
data: {}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: NS, labels: {change: CHANGE}}
type: Opaque
data: {mine: eA==}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: NS, labels: {change: CHANGE}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS, labels: {change: CHANGE}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      tolerations: []
      containers: [{name: web, image: "example.com/web:1"}]`

// testFilledIn leaves what controllers filled in, also when the manifests change and when
// the agent starts again.
func testFilledIn(t *testing.T, p *place) {
	t.Helper()
	stop := p.start(t)
	work := p.create(t, "app", filled)
	p.reaches(t, work, "Applied=True", "Available=True")
	fills := []struct {
		kind, name string
		patch      string
		path       []string
	}{
		{"ClusterRole", p.cluster + "-sum", "", []string{"rules"}},
		{"ClusterRole", p.cluster + "-sum-empty", "", []string{"rules"}},
		{"ClusterRole", p.cluster + "-sum-null", "", []string{"rules"}},
		{"ValidatingWebhookConfiguration", p.cluster, `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"RkFLRS1DQQo="}]`, []string{"webhooks"}},
		{"ConfigMap", "trusted", `[{"op":"add","path":"/data","value":{"ca":"x"}}]`, []string{"data"}},
		{"Secret", "token", `[{"op":"add","path":"/data/token","value":"eA=="}]`, []string{"data"}},
		{"ServiceAccount", "robot", `[{"op":"add","path":"/secrets","value":[{"name":"token"}]}]`, []string{"secrets"}},
		{"Deployment", "web", `[{"op":"replace","path":"/spec/replicas","value":3},{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"filled","operator":"Exists"}]},{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"injected","image":"example.com/proxy:1"}}]`, []string{"spec"}},
	}
	want := map[string]any{}
	for _, fill := range fills {
		o := p.objectOf(fill.kind, fill.name)
		if fill.patch != "" {
			if err := p.managed.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(fill.patch)), client.FieldOwner("filler")); err != nil {
				t.Fatal(err)
			}
		}
		await.Condition(t, patience, fill.name+" is filled in", func(ctx context.Context) (bool, error) {
			err := p.managed.Get(ctx, client.ObjectKeyFromObject(o), o)
			value, ok, _ := unstructured.NestedFieldCopy(o.Object, fill.path...)
			want[fill.kind+"/"+fill.name] = value
			return ok && !isEmpty(value), err
		})
	}
	kept := func() {
		t.Helper()
		got := map[string]any{}
		for _, fill := range fills {
			o := p.objectOf(fill.kind, fill.name)
			if err := p.managed.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			got[fill.kind+"/"+fill.name], _, _ = unstructured.NestedFieldNoCopy(o.Object, fill.path...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-filled in +is)\n%s", diff)
		}
	}
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.ReplaceAll(filled, "CHANGE", "second"))
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	kept()
	stop()
	p.start(t)
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.ReplaceAll(filled, "CHANGE", "third"))
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	kept()
}

// isEmpty reports whether a value is an empty list or map, or none.
func isEmpty(value any) bool {
	list, _ := value.([]any)
	fields, _ := value.(map[string]any)
	return len(list) == 0 && len(fields) == 0
}

// objectOf returns an object of a kind of filled, to read into.
func (p *place) objectOf(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(map[string]schema.GroupVersionKind{
		"ClusterRole":                    {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind},
		"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind},
		"Deployment":                     {Group: "apps", Version: "v1", Kind: kind},
		"ConfigMap":                      {Version: "v1", Kind: kind},
		"Secret":                         {Version: "v1", Kind: kind},
		"ServiceAccount":                 {Version: "v1", Kind: kind},
	}[kind])
	o.SetName(name)
	if !strings.HasPrefix(name, p.cluster) {
		o.SetNamespace(p.cluster)
	}
	return o
}

const before = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS, labels: {keep: x, gone: x}, annotations: {gone: x}}
data: {keep: x, gone: x}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  minReadySeconds: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      containers:
      - {name: web, image: "example.com/web:1", env: [{name: KEEP, value: x}, {name: GONE, value: x}]}
      - {name: gone, image: "example.com/gone:1"}`

const after = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS, labels: {keep: x}}
data: {keep: x}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      containers:
      - {name: web, image: "example.com/web:1", env: [{name: KEEP, value: x}]}`

// testLeftManifest removes what left the manifest, with every strategy that writes, and
// from every strategy to every other; also what an agent of OCM wrote.
func testLeftManifest(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	serverSide := func(manager string) workv1.UpdateStrategy {
		return workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: manager}}
	}
	strategies := map[string]workv1.UpdateStrategy{
		"update": {Type: workv1.UpdateStrategyTypeUpdate}, "apply": serverSide(""), "apply-mine": serverSide("work-agent-mine"),
		"create-only": {Type: workv1.UpdateStrategyTypeCreateOnly},
	}
	for from, first := range strategies {
		for to, second := range strategies {
			if to == "create-only" {
				continue
			}
			name := from + "-to-" + to
			work := p.create(t, name, strings.ReplaceAll(before, "name: one", "name: one-"+name), everywhere(first))
			p.reaches(t, work, "Applied=True", "Available=True")
			p.change(t, work, func(w *workv1.ManifestWork) {
				w.Spec.Workload.Manifests = p.manifests(t, strings.ReplaceAll(after, "name: one", "name: one-"+name))
				everywhere(second)(w)
			})
			p.reaches(t, work, "Applied=True", "Available=True")
			if err := p.left(t.Context(), "one-"+name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := p.hub.Delete(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			p.gone(t, work)
		}
	}
}

// everywhere sets the update strategy of all manifests.
func everywhere(s workv1.UpdateStrategy) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = nil
		for _, r := range []workv1.ResourceIdentifier{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}} {
			r.Name, r.Namespace = "*", "*"
			w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{ResourceIdentifier: r, UpdateStrategy: &s})
		}
	}
}

// left returns an error unless what left the manifests left their objects, and what the
// server has set by itself is there.
func (p *place) left(ctx context.Context, configMap string) error {
	c, err := p.configMap(ctx, configMap)
	if err != nil || c == nil {
		return fmt.Errorf("the ConfigMap %v, %w", c, err)
	}
	if len(c.Data) != 1 || len(c.Labels) != 1 || c.Annotations["gone"] != "" || len(c.OwnerReferences) != 1 {
		return fmt.Errorf("ConfigMap %v %v", c.ObjectMeta, c.Data)
	}
	d := &appsv1.Deployment{}
	if err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: "web"}, d); err != nil {
		return err
	}
	containers := d.Spec.Template.Spec.Containers
	if d.Spec.MinReadySeconds != 0 || len(containers) != 1 || len(containers[0].Env) != 1 || *d.Spec.Replicas != 1 {
		return fmt.Errorf("Deployment %+v", d.Spec)
	}
	return nil
}

// testContested has another writer change a field back again and again.
func testContested(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	for name, s := range map[string]workv1.UpdateStrategy{
		"update": {Type: workv1.UpdateStrategyTypeUpdate},
		"apply":  {Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true}},
	} {
		work := p.create(t, name, strings.ReplaceAll(oneMap, "name: one", "name: "+name), strategy(s))
		p.reaches(t, work, "Applied=True", "Available=True")
		for round := range 2 {
			p.edit(t, name, fmt.Sprintf(`{"data":{"key":"theirs-%d"}}`, round))
			p.finds(t, name, func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "value" })
		}
		await.Success(t, patience, "the other writer is named", func(ctx context.Context) error {
			if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			c := apimeta.FindStatusCondition(work.Status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestApplied)
			if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `.data.key by "somebody"`) {
				return errors.New(show(work))
			}
			return nil
		})
	}
}

// testRetained lays a manifest over an object whose fields the API server does not let go.
func testRetained(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim, namespace: NS, labels: {change: CHANGE}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}LAST}`
	work := p.create(t, "app", strings.ReplaceAll(claim, "LAST", ", volumeName: taken"))
	p.reaches(t, work, "Applied=True", "Available=True")
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.NewReplacer("LAST", "", "CHANGE", "second").Replace(claim))
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	c := &corev1.PersistentVolumeClaim{}
	if err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: "claim"}, c); err != nil {
		t.Fatal(err)
	}
	if c.Labels["change"] != "second" || c.Spec.VolumeName != "taken" || !slices.Equal(c.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) {
		t.Errorf("%v %+v", c.Labels, c.Spec)
	}
}

// testTwoManagers has two works apply fields of one object, each as a manager of its own:
// neither takes the fields of the other away.
func testTwoManagers(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	var works []*workv1.ManifestWork
	for _, name := range []string{"first", "second"} {
		works = append(works, p.create(t, name, strings.ReplaceAll(`
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS}
data: {NAME: x}`, "NAME", name), strategy(workv1.UpdateStrategy{
			Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent-" + name},
		})))
	}
	for _, work := range works {
		p.reaches(t, work, "Applied=True", "Available=True")
	}
	p.change(t, works[0], func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS}
data: {changed: x}`)
	})
	p.reaches(t, works[0], "Applied=True", "Available=True")
	c, err := p.configMap(t.Context(), "one")
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if diff := cmp.Diff(map[string]string{"changed": "x", "second": "x"}, c.Data); diff != "" || len(c.OwnerReferences) != 2 {
		t.Errorf("owners %v, data (-want +got)\n%s", c.OwnerReferences, diff)
	}
}

const odd = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: twice, namespace: NS, creationTimestamp: null, labels: {LABEL: x}}
spec:
  replicas: null
  MORE
  strategy: {}
  selector: {matchLabels: {app: twice}}
  template:
    metadata: {creationTimestamp: null, labels: {app: twice}}
    spec:
      automountServiceAccountToken: false
      nodeSelector: {}
      tolerations: []
      containers:
      - name: web
        image: "example.com/web:1"
        resources: {requests: {cpu: 1000m, memory: "1073741824"}}
        env: [{name: TWICE, value: first}, {name: TWICE, value: second}]
        ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]
        volumeMounts: [{name: empty, mountPath: /empty}]
      volumes: [{name: empty, emptyDir: {}}]
status: {}`

// testOddValues applies what real charts have and a server-side apply refuses: two variables
// of one name, and unknown fields. What leaves the manifest is removed all the same.
func testOddValues(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", strings.NewReplacer("MORE", "minReadySeconds: 7\n  unknown: field", "LABEL", "gone").Replace(odd))
	p.reaches(t, work, "Applied=True", "Available=True")
	scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "twice"}}
	if err := p.managed.Patch(t.Context(), scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("scaler")); err != nil {
		t.Fatal(err)
	}
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.NewReplacer("  MORE\n", "", "LABEL", "new").Replace(odd))
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	d := &appsv1.Deployment{}
	if err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: "twice"}, d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"new": "x"}, d.Labels); diff != "" || d.Spec.MinReadySeconds != 0 || len(d.Spec.Template.Spec.Containers[0].Env) != 2 {
		t.Errorf("%+v, labels (-want +got)\n%s", d.Spec, diff)
	}
	if *d.Spec.Replicas != 3 {
		t.Errorf("%d replicas: the manifest says nothing about them", *d.Spec.Replicas)
	}
}
