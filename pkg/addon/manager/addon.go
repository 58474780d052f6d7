package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AddOn owns and configures one ManagedClusterAddOn.
type AddOn struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Configs reads AddOnDeploymentConfigs and AddOnTemplates, which the client would
	// not read from the cache.
	Configs client.Reader
	// Clock dates conditions.
	Clock clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (a *AddOn) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(ctrl.Result{}, a.reconcile(ctx, req))
}

func (a *AddOn) reconcile(ctx context.Context, req ctrl.Request) error {
	addOn, cma := &addonv1beta1.ManagedClusterAddOn{}, &addonv1beta1.ClusterManagementAddOn{}
	if err := a.Client.Get(ctx, req.NamespacedName, addOn); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: addOn.Name}, cma); err != nil {
		return client.IgnoreNotFound(err)
	}
	if addOn.DeletionTimestamp != nil || !addonconfig.Managed(cma) {
		return nil
	}
	if err := a.own(ctx, addOn, cma); err != nil {
		return err
	}
	return a.configure(ctx, addOn, cma)
}

// own sets the fields of an add-on from its ClusterManagementAddOn and its cluster. An
// add-on that a user created is owned, so that it is deleted with the
// ClusterManagementAddOn, but not controlled: no placement deletes it.
func (a *AddOn) own(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cma *addonv1beta1.ClusterManagementAddOn) error {
	fields := map[string]any{}
	if owners, changed := owned(addOn.OwnerReferences, cma); changed {
		fields["ownerReferences"] = owners
	}
	if len(placements(cma)) > 0 && metav1.IsControlledBy(addOn, cma) {
		var cluster clusterv1.ManagedCluster
		err := a.Client.Get(ctx, client.ObjectKey{Name: addOn.Namespace}, &cluster)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if changes := inherited(addOn.Annotations, cluster.Annotations); err == nil && len(changes) > 0 {
			fields["annotations"] = changes
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return addonpatch.Metadata(ctx, a.Client, Owner, addOn, fields)
}

// owned returns the owners with the ClusterManagementAddOn among them, and
// whether that is a change. One of the same name that was there before stays
// what it was, controller or not.
func owned(owners []metav1.OwnerReference, cma *addonv1beta1.ClusterManagementAddOn) (want []metav1.OwnerReference, changed bool) {
	reference := *metav1.NewControllerRef(cma, kindOf("ClusterManagementAddOn"))
	reference.Controller, reference.BlockOwnerDeletion = nil, nil
	for _, owner := range owners {
		if owner.Kind != reference.Kind || owner.Name != reference.Name {
			want = append(want, owner)
			continue
		}
		if owner.UID == reference.UID {
			return owners, false
		}
		reference.Controller, reference.BlockOwnerDeletion = owner.Controller, owner.BlockOwnerDeletion
	}
	return append(want, reference), true
}

// inherited returns what has to change about an add-on's annotations so that it
// has those of its cluster: a value, or nil to remove one. Only what was copied
// from the cluster before is removed.
func inherited(addOn, cluster map[string]string) map[string]*string {
	changes := map[string]*string{}
	var copied []string
	for key, value := range cluster {
		if !strings.HasPrefix(key, names.AnnotationAddOnPrefix) {
			continue
		}
		copied = append(copied, key)
		if got, ok := addOn[key]; !ok || got != value {
			changes[key] = &value
		}
	}
	for key := range strings.SplitSeq(addOn[names.AnnotationCopied], ",") {
		if _, has := addOn[key]; has && !slices.Contains(copied, key) {
			changes[key] = nil
		}
	}
	slices.Sort(copied)
	if record := strings.Join(copied, ","); record != addOn[names.AnnotationCopied] {
		changes[names.AnnotationCopied] = &record
		if record == "" {
			changes[names.AnnotationCopied] = nil
		}
	}
	return changes
}

// plan is the desired state of an add-on.
type plan struct {
	configs     []config
	unsupported []addonv1beta1.AddOnConfig
	// placement is the one that chose the cluster last, nil if none matters.
	placement *addonv1beta1.PlacementStrategy
	// pending is set while the rollout of the placement has not reached the cluster.
	pending bool
}

// configure gives an add-on the configurations that it is to have. One that belongs to a
// rollout in steps keeps those that it has until it is released.
func (a *AddOn) configure(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cma *addonv1beta1.ClusterManagementAddOn) error {
	p, err := a.plan(ctx, addOn, cma)
	if err != nil {
		return err
	}
	want := references(addOn, p.configs)
	if inSteps(p.placement) && !sameConfigs(want, addOn.Status.ConfigReferences) {
		p.pending, want = true, addOn.Status.DeepCopy().ConfigReferences
	}
	return a.report(ctx, addOn, p, want)
}

// release configures an add-on that is due in a rollout.
func (a *AddOn) release(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cma *addonv1beta1.ClusterManagementAddOn) error {
	p, err := a.plan(ctx, addOn, cma)
	if err != nil {
		return err
	}
	return a.report(ctx, addOn, p, references(addOn, p.configs))
}

// report says which configurations an add-on has, and how far they were applied.
func (a *AddOn) report(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, p plan, want []addonv1beta1.ConfigReference) error {
	works, err := addonwork.List(ctx, a.Client, client.ObjectKeyFromObject(addOn))
	if err != nil {
		return err
	}
	wanted := []metav1.Condition{configured(p, want)}
	if condition := progressing(addOn, p, want, works); condition != nil {
		wanted = append(wanted, *condition)
	}
	return a.write(ctx, addOn, want, wanted)
}

// write writes what changed about the status of an add-on.
func (a *AddOn) write(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, references []addonv1beta1.ConfigReference, wanted []metav1.Condition) error {
	if equality.Semantic.DeepEqual(references, addOn.Status.ConfigReferences) {
		_, err := addonpatch.SetConditions(ctx, a.Client, Owner, addOn, a.Clock.Now(), wanted...)
		return err
	}
	conditions := slices.Clone(addOn.Status.Conditions)
	if !sameConfigs(references, addOn.Status.ConfigReferences) {
		// How long the add-on has been without errors counts from when it got these.
		apimeta.RemoveStatusCondition(&conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	}
	for _, condition := range wanted {
		condition.LastTransitionTime = metav1.NewTime(a.Clock.Now())
		apimeta.SetStatusCondition(&conditions, condition)
	}
	return addonpatch.Status(ctx, a.Client, Owner, addOn, map[string]any{
		"configReferences": references, "conditions": conditions,
	})
}

// plan returns what an add-on is to have: the default configurations, overridden by
// the last placement that chose the cluster, overridden by the add-on itself as far as it
// supports that.
func (a *AddOn) plan(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cma *addonv1beta1.ClusterManagementAddOn) (plan, error) {
	var p plan
	base, known := defaults(cma), knownDefault(cma)
	strategy, err := a.strategy(ctx, addOn.Namespace, cma)
	if err != nil {
		return p, err
	}
	if strategy != nil {
		base = override(base, strategy.Configs)
		known = knownInstall(progressionOf(cma, strategy.PlacementRef))
	}
	supported, unsupported := split(addOn)
	p = plan{configs: override(base, supported), unsupported: unsupported, placement: strategy}
	own := func(c config) bool {
		return slices.Contains(supported, addonv1beta1.AddOnConfig{ConfigGroupResource: c.kind, ConfigReferent: c.referent})
	}
	return p, resolve(ctx, a.Configs, p.configs, func(c config) string {
		if own(c) {
			return knownOwn(addOn, c)
		}
		return known(c)
	})
}

// strategy returns the last placement that chose a cluster. It does not look at
// decisions where no placement makes a difference.
func (a *AddOn) strategy(ctx context.Context, cluster string, cma *addonv1beta1.ClusterManagementAddOn) (*addonv1beta1.PlacementStrategy, error) {
	strategies := placements(cma)
	if !slices.ContainsFunc(strategies, func(s addonv1beta1.PlacementStrategy) bool { return len(s.Configs) > 0 || inSteps(&s) }) {
		return nil, nil //nolint:nilnil // No placement is an answer.
	}
	for i, strategy := range slices.Backward(strategies) {
		ours, err := chosen(ctx, a.Client, strategy.PlacementRef, cluster)
		if err != nil {
			return nil, err
		}
		if ours {
			return &strategies[i], nil
		}
	}
	return nil, nil //nolint:nilnil // See above.
}

func progressionOf(cma *addonv1beta1.ClusterManagementAddOn, ref addonv1beta1.PlacementRef) addonv1beta1.InstallProgression {
	for _, p := range cma.Status.InstallProgressions {
		if p.PlacementRef == ref {
			return p
		}
	}
	return addonv1beta1.InstallProgression{}
}

// split sorts the configurations in an add-on's spec by whether the add-on
// supports them.
func split(addOn *addonv1beta1.ManagedClusterAddOn) (supported, unsupported []addonv1beta1.AddOnConfig) {
	for _, c := range addOn.Spec.Configs {
		if slices.Contains(addOn.Status.SupportedConfigs, c.ConfigGroupResource) {
			supported = append(supported, c)
		} else {
			unsupported = append(unsupported, c)
		}
	}
	return supported, unsupported
}

func reference(addOn *addonv1beta1.ManagedClusterAddOn, c config) *addonv1beta1.ConfigReference {
	for i := range addOn.Status.ConfigReferences {
		r := &addOn.Status.ConfigReferences[i]
		if r.ConfigGroupResource == c.kind && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == c.referent {
			return r
		}
	}
	return nil
}

func knownOwn(addOn *addonv1beta1.ManagedClusterAddOn, c config) string {
	if r := reference(addOn, c); r != nil {
		return r.DesiredConfig.SpecHash
	}
	return ""
}

// references are the status.configReferences of an add-on. What was applied
// last, and what the add-on's own manager observed, stays.
func references(addOn *addonv1beta1.ManagedClusterAddOn, configs []config) []addonv1beta1.ConfigReference {
	var want []addonv1beta1.ConfigReference
	for _, c := range configs {
		r := addonv1beta1.ConfigReference{ConfigGroupResource: c.kind}
		if old := reference(addOn, c); old != nil {
			r = *old.DeepCopy()
		}
		r.DesiredConfig = c.specHash()
		if c.generation != 0 {
			r.LastObservedGeneration = c.generation
		}
		want = append(want, r)
	}
	return want
}

// configured returns the condition that reports the state of the configurations that an
// add-on has.
func configured(p plan, references []addonv1beta1.ConfigReference) metav1.Condition {
	condition := metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionConfigured, Status: metav1.ConditionFalse}
	var missing []string
	for _, r := range references {
		if r.DesiredConfig != nil && r.DesiredConfig.SpecHash == "" {
			missing = append(missing, addonconfig.Describe(r.ConfigGroupResource, r.DesiredConfig.ConfigReferent))
		}
	}
	switch {
	case len(p.unsupported) > 0:
		condition.Reason = names.ReasonConfigurationUnsupported
		condition.Message = unsupportedMessage(p.unsupported[0])
	case p.pending && len(references) == 0:
		condition.Reason = names.ReasonConfigurationsNotConfigured
		condition.Message = fmt.Sprintf("Waiting for its turn in the rollout of placement %s/%s", p.placement.Namespace, p.placement.Name)
	case len(missing) > 0:
		condition.Reason = names.ReasonConfigurationsNotConfigured
		condition.Message = fmt.Sprintf("Waiting for %s: it does not exist, or the add-on's own manager has not processed it yet", strings.Join(missing, ", "))
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = names.ReasonConfigurationsConfigured, "Configurations configured"
	}
	return condition
}

func unsupportedMessage(c addonv1beta1.AddOnConfig) string {
	return fmt.Sprintf("The add-on does not support %s in spec.configs (see status.supportedConfigs); it is ignored",
		addonconfig.Describe(c.ConfigGroupResource, c.ConfigReferent))
}
