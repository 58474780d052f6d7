package clustermanager

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// rejectedSetting returns the rejection of a setting with which the registration
// controller would not start, or nil. A running controller retains its settings, a
// missing one is not created, and everything else is applied.
func (r *Reconciler) rejectedSetting(cm *operatorv1.ClusterManager) *metav1.Condition {
	if cm.Spec.RegistrationConfiguration == nil {
		return nil
	}
	return r.rejectedDriver(cm)
}

// sentence returns joined errors on one line.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", ". ") }

// plan returns the phases of a pass, and the rejection of a setting that they omit; nil
// if there is none.
func (r *Reconciler) plan(ctx context.Context, s *scope) ([]operand.Phase[manifests.Hub], *metav1.Condition, error) {
	phases := r.phases()
	rejected := r.rejectedSetting(s.cm)
	if rejected == nil {
		var err error
		if rejected, err = r.droppedDriver(ctx, s); rejected == nil || err != nil {
			return phases, nil, err
		}
	}
	if err := r.retainSystem(ctx, s); err != nil {
		return nil, nil, err
	}
	registration := operand.Component{
		Name: "registration controller", Kind: "controller", Phase: controllerPhase, Args: &s.Values.RegistrationArgs,
		Deployment:  registrationDeployment(s),
		Account:     client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationServiceAccount},
		Annotations: &s.Values.RegistrationAnnotations,
		Keys:        r.config.Drivers.AccountKeys(),
	}
	phases, err := operand.RetainSettings(ctx, r.Uncached, registration, rejected, phases)
	return phases, rejected, err
}

func registrationDeployment(s *scope) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationDeployment(s.cm.Name)}
}
