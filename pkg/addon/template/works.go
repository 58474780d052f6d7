package template

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/render"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// deployment is the content of an add-on on its cluster.
type deployment struct {
	// works deploy the agent.
	works []*workv1.ManifestWork
	// hook runs before the add-on is deleted; nil if nothing has to.
	hook *workv1.ManifestWork
	// workloads are the workloads that need ready pods.
	workloads []workv1.ResourceIdentifier
}

// deploy returns the works for the manifests of an add-on that has those which are live.
func deploy(addOn *addonv1beta1.ManagedClusterAddOn, spec *addonv1alpha1.AddOnTemplateSpec, objects []*unstructured.Unstructured,
	live []*workv1.ManifestWork,
) (deployment, error) {
	var d deployment
	var manifests, hooks []workv1.Manifest
	var orphans []workv1.OrphaningRule
	configs, hookConfigs := []workv1.ManifestConfigOption{}, []workv1.ManifestConfigOption{}
	for _, object := range objects {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return d, err
		}
		m := workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
		if isHook(object) {
			hooks, hookConfigs = append(hooks, m), append(hookConfigs, wellKnown(identify(object)))
			continue
		}
		manifests = append(manifests, m)
		id := identify(object)
		if _, ok := object.GetAnnotations()[addonv1beta1.DeletionOrphanAnnotationKey]; ok {
			orphans = append(orphans, workv1.OrphaningRule(id))
		}
		if render.Workload(object) == "" {
			continue
		}
		configs = append(configs, wellKnown(id))
		if replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); !found || replicas > 0 {
			d.workloads = append(d.workloads, id)
		}
	}
	options := workv1.ManifestWorkSpec{
		ManifestConfigs: merge(configs, spec.AgentSpec.ManifestConfigs),
		DeleteOption:    spec.AgentSpec.DeleteOption, Executor: spec.AgentSpec.Executor,
	}
	if len(orphans) > 0 {
		options.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: orphans},
		}
	}
	var err error
	if d.works, err = split(addOn, options, manifests, live); err != nil {
		return d, err
	}
	if len(hooks) > 0 {
		options := workv1.ManifestWorkSpec{ManifestConfigs: hookConfigs, Executor: spec.AgentSpec.Executor}
		if d.hook, err = newWork(addOn, names.AddOnPreDeleteWork(addOn.Name), options, hooks); err != nil {
			return d, err
		}
	}
	return d, nil
}

// isHook reports whether an object runs before the add-on is deleted. Only what ends can.
func isHook(object *unstructured.Unstructured) bool {
	if kind := object.GetKind(); kind != "Job" && kind != "Pod" {
		return false
	}
	_, annotated := object.GetAnnotations()[addonv1beta1.AddonPreDeleteHookAnnotationKey]
	_, labelled := object.GetLabels()[addonv1beta1.AddonPreDeleteHookAnnotationKey]
	return annotated || labelled
}

// identify names an object as the status of a work does. The plural of a kind is not
// known on the hub; it is guessed by the rule of English that all kinds follow which an
// option here is for.
func identify(object *unstructured.Unstructured) workv1.ResourceIdentifier {
	plural, _ := apimeta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return workv1.ResourceIdentifier{Group: plural.Group, Resource: plural.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// wellKnown asks for the well-known values of an object's status.
func wellKnown(id workv1.ResourceIdentifier) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{ResourceIdentifier: id, FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}}
}

// merge adds the options of a template to ours. Those for an object that has one of ours
// are joined with it.
func merge(ours, template []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	for _, theirs := range template {
		i := slices.IndexFunc(ours, func(o workv1.ManifestConfigOption) bool { return o.ResourceIdentifier == theirs.ResourceIdentifier })
		if i < 0 {
			ours = append(ours, theirs)
			continue
		}
		joined := *theirs.DeepCopy()
		known := func(r workv1.FeedbackRule) bool { return r.Type == workv1.WellKnownStatusType }
		if !slices.ContainsFunc(joined.FeedbackRules, known) {
			joined.FeedbackRules = append(ours[i].FeedbackRules, joined.FeedbackRules...)
		}
		ours[i] = joined
	}
	return ours
}

func newWork(addOn *addonv1beta1.ManagedClusterAddOn, name string, options workv1.ManifestWorkSpec, manifests []workv1.Manifest) (*workv1.ManifestWork, error) {
	hashes, err := json.Marshal(addonconfig.Hashes(addOn.Status.ConfigReferences))
	if err != nil {
		return nil, err
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addOn.Namespace, Name: name,
		Labels:          map[string]string{names.LabelAddOnName: addOn.Name},
		Annotations:     map[string]string{workv1.ManifestConfigSpecHashAnnotationKey: string(hashes)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(addOn, kindAddOn())},
	}, Spec: *options.DeepCopy()}
	work.Spec.Workload.Manifests = manifests
	return work, nil
}

func kindAddOn() schema.GroupVersionKind {
	return schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn")
}

// current reports whether a work in the cache is as wanted.
func current(live, want *workv1.ManifestWork) bool {
	stored := &workv1.ManifestWork{ObjectMeta: want.ObjectMeta, Spec: defaulted(want.Spec)}
	addonwork.Digest(stored)
	for key, value := range want.Labels {
		if live.Labels[key] != value {
			return false
		}
	}
	for key, value := range want.Annotations {
		if live.Annotations[key] != value {
			return false
		}
	}
	return slices.ContainsFunc(live.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == want.OwnerReferences[0].UID }) &&
		equality.Semantic.DeepEqual(live.Spec, stored.Spec)
}

// defaulted returns a spec as the API server stores it.
func defaulted(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	spec = *spec.DeepCopy()
	if spec.DeleteOption != nil && spec.DeleteOption.PropagationPolicy == "" {
		spec.DeleteOption.PropagationPolicy = workv1.DeletePropagationPolicyTypeForeground
	}
	for i := range spec.ManifestConfigs {
		config := &spec.ManifestConfigs[i]
		if config.FeedbackScrapeType == "" {
			config.FeedbackScrapeType = workv1.FeedbackPollType
		}
		strategy := config.UpdateStrategy
		if strategy == nil {
			continue
		}
		if strategy.Type == "" {
			strategy.Type = workv1.UpdateStrategyTypeUpdate
		}
		if s := strategy.ServerSideApply; s != nil {
			if s.FieldManager == "" {
				s.FieldManager = workv1.DefaultFieldManager
			}
			for j := range s.IgnoreFields {
				if s.IgnoreFields[j].Condition == "" {
					s.IgnoreFields[j].Condition = workv1.IgnoreFieldsConditionOnSpokePresent
				}
			}
		}
	}
	return spec
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// repair is the patch that makes a work in the cache as wanted, unless it changed since.
func repair(live, want *workv1.ManifestWork) ([]byte, error) {
	merged := func(live, want map[string]string) map[string]string {
		all := maps.Clone(want)
		for key, value := range live {
			if _, ours := all[key]; !ours {
				all[key] = value
			}
		}
		return all
	}
	owners := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.Kind == want.OwnerReferences[0].Kind
	})
	return json.Marshal([]operation{
		{"add", "/metadata/resourceVersion", live.ResourceVersion},
		{"add", "/metadata/labels", merged(live.Labels, want.Labels)},
		{"add", "/metadata/annotations", merged(live.Annotations, want.Annotations)},
		{"add", "/metadata/ownerReferences", append(owners, want.OwnerReferences...)},
		{"add", "/spec", want.Spec},
	})
}
