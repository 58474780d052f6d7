package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/source"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// errDone ends a pass early, without a report: what is left to do waits for an event.
var errDone = errors.New("nothing is left to do")

// pass is one reconciliation of an add-on that is deployed. Its phases fill it in their order.
type pass struct {
	addOn   *addonv1beta1.ManagedClusterAddOn
	cluster *clusterv1.ManagedCluster
	// status is the desired status of the add-on.
	status *addonv1beta1.ManagedClusterAddOnStatus

	from *source.Source
	// live are the works that deploy the add-on now.
	live []*workv1.ManifestWork
	deployment
	// unplanned is why the template gives no deployment. Another try gives the same.
	unplanned error
	// unapplied is why the works are not as planned.
	unapplied error

	// retry are the errors that another try may resolve.
	retry []error
	// after is when to look again without an event, 0 for never.
	after time.Duration
}

// read finds the configurations of the add-on, and its works.
func (r *Reconciler) read(ctx context.Context, p *pass) (err error) {
	p.status.SupportedConfigs = []addonconfig.Kind{addonconfig.DeploymentConfigs(), addonconfig.Templates()}
	if p.from, err = source.Of(ctx, r.Configs, p.addOn); err != nil {
		return err
	}
	if p.from == nil {
		return cmp.Or(r.report(ctx, p), errDone)
	}
	p.live, err = r.works(ctx, p.addOn)
	return err
}

// plan makes the works from the template. The finalizer of an add-on that runs something
// before its deletion is written first, so that no deletion misses it.
func (r *Reconciler) plan(ctx context.Context, p *pass) error {
	p.deployment, p.unplanned = r.render(p.addOn, p.cluster, p.from, p.live)
	if p.unplanned == nil && hooked(p.addOn) != (p.hook != nil) {
		return cmp.Or(r.finalize(ctx, p.addOn, p.finalizers()...), errDone)
	}
	return nil
}

// register says which credentials the add-on gets, and gives it its permissions on the hub.
func (r *Reconciler) register(ctx context.Context, p *pass) error {
	p.status.Namespace = p.from.Namespace()
	p.status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
	p.status.Registrations = source.Registrations(p.addOn, p.from.Template)
	if !slices.ContainsFunc(p.status.Registrations, func(c addonv1beta1.RegistrationConfig) bool { return c.Type == addonv1beta1.CustomSigner }) {
		apimeta.RemoveStatusCondition(&p.status.Conditions, names.ConditionCustomSignersGranted)
	}
	var err error
	p.after, err = r.permit(ctx, p.addOn, p.from.Template, subjects(p.addOn, p.status.Registrations))
	r.set(p.status, registrationApplied(len(p.status.Registrations) > 0, err))
	if !errors.Is(err, errPending) { // The agent writes the subject, which is an event.
		p.retry = append(p.retry, err)
	}
	return nil
}

// applyWorks writes the works as planned.
func (r *Reconciler) applyWorks(ctx context.Context, p *pass) error {
	if p.unplanned == nil {
		p.unapplied = r.apply(ctx, p.live, p.works)
		p.retry = append(p.retry, p.unapplied)
	}
	return nil
}

// evaluate sets the conditions about the works and the health of the add-on.
func (r *Reconciler) evaluate(ctx context.Context, p *pass) error {
	if failure := errors.Join(p.unplanned, p.unapplied); failure != nil {
		if apierrors.IsConflict(failure) {
			return failure
		}
		r.set(p.status, metav1.Condition{
			Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionFalse,
			Reason: addonv1beta1.AddonManifestAppliedReasonWorkApplyFailed, Message: fmt.Sprintf("failed to apply manifestWork: %v", failure),
		})
		return nil
	}
	works, err := r.works(ctx, p.addOn)
	if err != nil {
		return err
	}
	if condition := manifestApplied(len(p.works), works); condition != nil {
		r.set(p.status, *condition)
	} else if kind := addonv1beta1.ManagedClusterAddOnManifestApplied; apimeta.IsStatusConditionFalse(p.status.Conditions, kind) {
		apimeta.RemoveStatusCondition(&p.status.Conditions, kind)
	}
	// Where the hub does not hear from the cluster, the registration controller says so.
	if heard(p.cluster) && apimeta.FindStatusCondition(p.status.Conditions, addonv1beta1.ManagedClusterAddOnManifestApplied) != nil {
		r.set(p.status, available(p.addOn.Name, works, p.workloads))
	}
	return nil
}

// measure counts the add-on among those that are deployed, or not.
func (r *Reconciler) measure(_ context.Context, p *pass) error {
	r.Metrics.Observe(client.ObjectKeyFromObject(p.addOn), deployed(p.status.Conditions))
	return nil
}

// report writes what changed about the status of the add-on.
func (r *Reconciler) report(ctx context.Context, p *pass) error {
	before, want := &p.addOn.Status, p.status
	fields := map[string]any{}
	for field, pair := range map[string][2]any{
		"supportedConfigs": {before.SupportedConfigs, want.SupportedConfigs},
		"registrations":    {before.Registrations, want.Registrations},
		"namespace":        {before.Namespace, want.Namespace},
		"healthCheck":      {before.HealthCheck, want.HealthCheck},
		"conditions":       {before.Conditions, want.Conditions},
	} {
		if !equality.Semantic.DeepEqual(pair[0], pair[1]) {
			fields[field] = pair[1]
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return addonpatch.Status(ctx, r.Client, Owner, p.addOn, fields)
}
