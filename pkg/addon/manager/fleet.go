package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/rollouts"
)

// Owner is the field manager of everything this package writes.
const Owner client.FieldOwner = "ocm.addonmanager"

// installers is how many add-ons of one ClusterManagementAddOn are made or
// deleted at a time.
const installers = 8

// Fleet installs the add-ons of a ClusterManagementAddOn, and rolls their configurations
// out.
type Fleet struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Configs reads AddOnDeploymentConfigs and AddOnTemplates, which the client would
	// not read from the cache.
	Configs client.Reader
	// Clock dates conditions.
	Clock clock.PassiveClock
	// AddOns configures the add-ons that are due.
	AddOns *AddOn

	// sizes are how many add-ons ClusterManagementAddOns had when they were last looked
	// at, by name.
	sizes sync.Map
}

// Reconcile implements reconcile.Reconciler.
func (f *Fleet) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(f.reconcile(ctx, req.Name))
}

func (f *Fleet) reconcile(ctx context.Context, name string) (ctrl.Result, error) {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, cma); err != nil {
		f.sizes.Delete(name)
		return ctrl.Result{}, client.IgnoreNotFound(err) // Its add-ons are garbage by their owner reference.
	}
	if cma.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	var existing addonv1beta1.ManagedClusterAddOnList
	if err := f.Client.List(ctx, &existing, addonindex.Named(name), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	f.sizes.Store(name, len(existing.Items))
	progress, err := f.report(ctx, cma, existing.Items)
	if err != nil || len(placements(cma)) == 0 {
		return ctrl.Result{}, err
	}
	made, err := f.install(ctx, cma, existing.Items)
	if made {
		// A rollout takes its clusters in order, but the cache may show the add-on of a later
		// one first. The events of the others reconcile again.
		return ctrl.Result{}, err
	}
	var result ctrl.Result
	errs := []error{err}
	for _, r := range progress {
		errs = append(errs, each(ctx, r.release, func(addOn *addonv1beta1.ManagedClusterAddOn) error {
			return client.IgnoreNotFound(f.AddOns.release(ctx, addOn.DeepCopy(), cma))
		}))
		if r.Recheck > 0 && (result.RequeueAfter == 0 || r.Recheck < result.RequeueAfter) {
			result.RequeueAfter = r.Recheck
		}
	}
	return result, errors.Join(errs...)
}

// report writes the references to configurations, and how far they were rolled out, into
// the status. What the add-on's own manager found out about them stays.
func (f *Fleet) report(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, existing []addonv1beta1.ManagedClusterAddOn) ([]rollout, error) {
	want, rollouts, err := f.status(ctx, cma, existing)
	if err != nil || equality.Semantic.DeepEqual(cma.Status, want) {
		return rollouts, err
	}
	err = mergepatch.Write(ctx, f.Client, Owner, cma, mergepatch.Fields{"status": {
		"defaultConfigReferences": want.DefaultConfigReferences, "installProgressions": want.InstallProgressions,
	}})
	if err != nil {
		return nil, fmt.Errorf("status of cluster management add-on %s: %w", cma.Name, err)
	}
	return rollouts, nil
}

func (f *Fleet) status(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, existing []addonv1beta1.ManagedClusterAddOn,
) (want addonv1beta1.ClusterManagementAddOnStatus, rollouts []rollout, err error) {
	configs := defaults(cma)
	if err := resolve(ctx, f.Configs, configs, knownDefault(cma)); err != nil {
		return want, nil, err
	}
	for _, c := range configs {
		want.DefaultConfigReferences = append(want.DefaultConfigReferences,
			addonv1beta1.DefaultConfigReference{ConfigGroupResource: c.kind, DesiredConfig: c.specHash()})
	}
	if !addonconfig.Managed(cma) {
		want.InstallProgressions = cma.Status.InstallProgressions // Its own manager's.
	}
	taken := sets.New[string]()
	// The last placement that chose a cluster configures it.
	for _, strategy := range slices.Backward(placements(cma)) {
		progression, r, err := f.progression(ctx, cma, strategy, existing, taken)
		if err != nil {
			return want, nil, err
		}
		want.InstallProgressions = append(want.InstallProgressions, progression)
		rollouts = append(rollouts, r)
	}
	if addonconfig.Managed(cma) {
		slices.Reverse(want.InstallProgressions)
	}
	return want, rollouts, nil
}

// progression returns how far the configurations of a placement are, in the clusters that
// are not taken, and takes these.
func (f *Fleet) progression(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, strategy addonv1beta1.PlacementStrategy,
	existing []addonv1beta1.ManagedClusterAddOn, taken sets.Set[string],
) (addonv1beta1.InstallProgression, rollout, error) {
	before := progressionOf(cma, strategy.PlacementRef)
	want := addonv1beta1.InstallProgression{PlacementRef: strategy.PlacementRef, Conditions: slices.Clone(before.Conditions)}
	configs := override(defaults(cma), strategy.Configs)
	if err := resolve(ctx, f.Configs, configs, knownInstall(before)); err != nil {
		return want, rollout{}, err
	}
	for _, c := range configs {
		reference := addonv1beta1.InstallConfigReference{ConfigGroupResource: c.kind}
		if old := installReference(before, c); old != nil {
			reference = *old.DeepCopy()
		}
		reference.DesiredConfig = c.specHash()
		want.ConfigReferences = append(want.ConfigReferences, reference)
	}
	r, err := f.rollOut(ctx, &want, strategy, configs, existing, taken)
	return want, r, err
}

// rollOut finds the add-ons that are due for configurations, and reports their
// progress.
func (f *Fleet) rollOut(ctx context.Context, progression *addonv1beta1.InstallProgression, strategy addonv1beta1.PlacementStrategy, configs []config,
	existing []addonv1beta1.ManagedClusterAddOn, taken sets.Set[string],
) (rollout, error) {
	decisions, err := decisionsFor(ctx, f.Client, strategy.PlacementRef)
	if err != nil {
		return rollout{}, err
	}
	groups := rollouts.Groups(decisions)
	rollouts.Restrict(groups, func(cluster string) bool { return !taken.Has(cluster) })
	clusters := groups.GetClusters()
	taken.Insert(clusters.UnsortedList()...)
	candidates, err := f.candidates(ctx, configs, existing, clusters)
	if err != nil {
		return rollout{}, err
	}
	// A cluster without the add-on, such as one that is not accepted, must not keep
	// the others waiting.
	rollouts.Restrict(groups, func(cluster string) bool { _, ok := candidates[cluster]; return ok })
	placement := client.ObjectKey{Namespace: strategy.Namespace, Name: strategy.Name}
	rolling, err := rollouts.Concurrency(ctx, f.Client, placement, strategy.RolloutStrategy)
	if err != nil {
		return rollout{}, err
	}
	now := f.Clock.Now()
	r, err := evaluate(rolling, groups, candidates)
	reportInvalid(progression, err, now)
	r.report(progression, now)
	if !inSteps(&strategy) {
		r.release, r.Recheck = nil, 0 // AddOn configures them at once.
	}
	return r, nil
}

// candidates returns the add-ons in clusters, and what they are to have by configs and
// by what their own specs override.
func (f *Fleet) candidates(ctx context.Context, configs []config, existing []addonv1beta1.ManagedClusterAddOn, clusters sets.Set[string]) (map[string]candidate, error) {
	candidates := map[string]candidate{}
	for i := range existing {
		addOn := &existing[i]
		if !clusters.Has(addOn.Namespace) || addOn.DeletionTimestamp != nil {
			continue
		}
		wanted := configs
		if supported, _ := split(addOn); len(supported) > 0 {
			var own []config
			wanted = slices.DeleteFunc(override(configs, supported), func(c config) bool {
				mine := slices.Contains(supported, addonv1beta1.AddOnConfig{ConfigGroupResource: c.kind, ConfigReferent: c.referent})
				if mine {
					own = append(own, c)
				}
				return mine
			})
			if err := resolve(ctx, f.Configs, own, func(c config) string { return knownOwn(addOn, c) }); err != nil {
				return nil, err
			}
			wanted = append(wanted, own...)
		}
		candidates[addOn.Namespace] = candidate{addOn: addOn, want: references(addOn, wanted)}
	}
	return candidates, nil
}

func knownDefault(cma *addonv1beta1.ClusterManagementAddOn) func(config) string {
	return func(c config) string {
		for _, r := range cma.Status.DefaultConfigReferences {
			if r.ConfigGroupResource == c.kind && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == c.referent {
				return r.DesiredConfig.SpecHash
			}
		}
		return ""
	}
}

func installReference(p addonv1beta1.InstallProgression, c config) *addonv1beta1.InstallConfigReference {
	for i := range p.ConfigReferences {
		r := &p.ConfigReferences[i]
		if r.ConfigGroupResource == c.kind && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == c.referent {
			return r
		}
	}
	return nil
}

func knownInstall(p addonv1beta1.InstallProgression) func(config) string {
	return func(c config) string {
		if r := installReference(p, c); r != nil {
			return r.DesiredConfig.SpecHash
		}
		return ""
	}
}

// install makes the add-on in the clusters that were decided and deletes what it
// made in others. It reports whether there are add-ons now that are not among those existing.
func (f *Fleet) install(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, existing []addonv1beta1.ManagedClusterAddOn) (bool, error) {
	required, complete, err := f.required(ctx, cma)
	if err != nil {
		return false, err
	}
	missing := required.Clone()
	var surplus []*addonv1beta1.ManagedClusterAddOn
	for i := range existing {
		addOn := &existing[i]
		missing.Delete(addOn.Namespace)
		if complete && !required.Has(addOn.Namespace) && addOn.DeletionTimestamp == nil && metav1.IsControlledBy(addOn, cma) {
			surplus = append(surplus, addOn)
		}
	}
	var made atomic.Bool
	err = errors.Join(
		each(ctx, sets.List(missing), func(cluster string) error {
			exists, err := f.create(ctx, cma, cluster)
			if exists {
				made.Store(true)
			}
			return err
		}),
		each(ctx, surplus, func(addOn *addonv1beta1.ManagedClusterAddOn) error { return f.remove(ctx, addOn) }),
	)
	return made.Load(), err
}

// required returns the clusters that were decided, and whether every placement has
// a decision.
func (f *Fleet) required(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn) (required sets.Set[string], complete bool, err error) {
	required, complete = sets.New[string](), true
	for _, strategy := range placements(cma) {
		clusters, ok, err := decided(ctx, f.Client, strategy.PlacementRef)
		if err != nil {
			return nil, false, err
		}
		required.Insert(clusters...)
		complete = complete && ok
	}
	return required, complete, nil
}

// surplus reports whether an add-on is to be deleted, as the cache knows. It reads
// nothing else, and fails only while the cache is stopping.
func (f *Fleet) surplus(ctx context.Context, addOn client.Object) bool {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: addOn.GetName()}, cma); err != nil || !metav1.IsControlledBy(addOn, cma) {
		return false
	}
	for _, strategy := range placements(cma) {
		if ours, err := chosen(ctx, f.Client, strategy.PlacementRef, addOn.GetNamespace()); ours || err != nil {
			return false
		}
	}
	_, complete, err := f.required(ctx, cma)
	return err == nil && complete
}

// each calls do for all items, several at a time, and continues after a failure.
func each[T any](ctx context.Context, items []T, do func(T) error) error {
	errs := make([]error, len(items))
	workqueue.ParallelizeUntil(ctx, installers, len(items), func(i int) { errs[i] = do(items[i]) })
	return errors.Join(errors.Join(errs...), ctx.Err())
}

// create makes the add-on of a cluster. One that is not accepted, or going, gets
// none; its acceptance is an event. It reports whether there is one now.
func (f *Fleet) create(ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, name string) (exists bool, err error) {
	var cluster clusterv1.ManagedCluster
	if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !cluster.Spec.HubAcceptsClient || cluster.DeletionTimestamp != nil {
		return false, nil
	}
	annotations := map[string]string{}
	for key, value := range inherited(nil, cluster.Annotations) {
		annotations[key] = *value
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: cma.Name, Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cma, kindOf("ClusterManagementAddOn"))},
	}}
	err = f.Client.Create(ctx, addOn, Owner)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return true, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, nil // The cluster is on its way out.
	}
	// A cluster that was just accepted may have no namespace yet: it is tried again.
	return false, fmt.Errorf("add-on %s of cluster %s: %w", cma.Name, name, err)
}

func (f *Fleet) remove(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) error {
	target := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name}}
	err := f.Client.Delete(ctx, target, client.Preconditions{UID: new(addOn.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deletion of add-on %s of cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	return nil
}
