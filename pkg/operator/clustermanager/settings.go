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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// rejectedSetting returns the rejection of a setting with which the registration
// controller would not start, or nil. A running controller retains its settings, a
// missing one is not created, and everything else is applied.
func rejectedSetting(cm *operatorv1.ClusterManager) *metav1.Condition {
	c := cm.Spec.RegistrationConfiguration
	if c == nil {
		return nil
	}
	for _, d := range c.RegistrationDrivers {
		if _, err := driver.ParseAuthType(d.AuthType); err != nil {
			return operand.Rejection(ReasonDriverNotSupported, "spec.registrationConfiguration.registrationDrivers: %v", err)
		}
	}
	if aws, ok := hubspec.Of(cm); ok {
		if err := aws.Validate(hubspec.FieldNames()); err != nil {
			return operand.Rejection(ReasonSettingInvalid, "%s", sentence(err))
		}
	}
	return nil
}

// sentence returns joined errors on one line.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", ". ") }

// plan returns the phases of a pass, and the rejection of a setting that they omit,
// which is nil when there is none.
func (r *Reconciler) plan(ctx context.Context, s *scope) ([]operand.Phase[manifests.Hub], *metav1.Condition, error) {
	phases := r.phases()
	rejected := rejectedSetting(s.cm)
	if rejected == nil {
		var err error
		if rejected, err = r.droppedDriver(ctx, s); rejected == nil || err != nil {
			return phases, nil, err
		}
	}
	if err := r.retainAWSAuth(ctx, s); err != nil {
		return nil, nil, err
	}
	registration := operand.Component{
		Name: "registration controller", Kind: "controller", Phase: controllerPhase, Args: &s.Values.RegistrationArgs,
		Deployment:  registrationDeployment(s),
		Account:     client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationServiceAccount},
		Annotations: &s.Values.RegistrationAnnotations,
	}
	phases, err := operand.RetainSettings(ctx, r.Uncached, registration, rejected, phases)
	return phases, rejected, err
}

func registrationDeployment(s *scope) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationDeployment(s.cm.Name)}
}
