package clustermanager

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pass"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// unsupportedMode returns the condition of an install mode that this version
// does not have, or nil. Nothing is applied for such a ClusterManager, because
// its controllers would run in the wrong place; what runs goes on running.
func unsupportedMode(spec *operatorv1.ClusterManagerSpec) *metav1.Condition {
	mode := spec.DeployOption.Mode
	if mode == "" || mode == operatorv1.InstallModeDefault {
		return nil
	}
	return refuse(ReasonModeNotSupported, "The install mode %s is not supported by this version: set spec.deployOption.mode to Default", mode)
}

// refusedSetting returns the condition of a setting with which the registration
// controller would not start, or nil. One that runs keeps its settings
// meanwhile, and none is created; everything else is applied.
func refusedSetting(cm *operatorv1.ClusterManager) *metav1.Condition {
	c := cm.Spec.RegistrationConfiguration
	if c == nil {
		return nil
	}
	for _, d := range c.RegistrationDrivers {
		kind, err := driver.ParseAuthType(d.AuthType)
		if err != nil {
			return refuse(ReasonDriverNotSupported, "spec.registrationConfiguration.registrationDrivers: %v", err)
		}
		if kind != driver.CSR && kind != driver.AWSIRSA {
			return refuse(ReasonDriverNotSupported, "The registration driver %s is not supported by this version: use csr or awsirsa", kind)
		}
	}
	if aws, ok := hubspec.Of(cm); ok {
		if err := aws.Validate(hubspec.FieldNames()); err != nil {
			return refuse(ReasonSettingInvalid, "%s", sentence(err))
		}
	}
	return nil
}

// sentence puts errors that were joined into one line.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", ". ") }

func refuse(reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// plan returns the phases of a pass, and the condition of a setting that they
// leave out, which is nil where there is none.
func (r *Reconciler) plan(ctx context.Context, s *scope) ([]pass.Phase[manifests.Hub], *metav1.Condition, error) {
	phases := r.phases()
	refused := refusedSetting(s.cm)
	if refused == nil {
		var err error
		if refused, err = r.droppedDriver(ctx, s); refused == nil || err != nil {
			return phases, nil, err
		}
	}
	if err := r.keepAWSAuth(ctx, s); err != nil {
		return nil, nil, err
	}
	registration := pass.Component{
		Name: "registration controller", Kind: "controller", Phase: controllerPhase, Args: &s.Values.RegistrationArgs,
		Deployment:  registrationDeployment(s),
		Account:     client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationServiceAccount},
		Annotations: &s.Values.RegistrationAnnotations,
	}
	phases, err := pass.KeepSettings(ctx, r.uncached, registration, refused, phases)
	return phases, refused, err
}

func registrationDeployment(s *scope) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Values.Namespace, Name: names.HubRegistrationDeployment(s.cm.Name)}
}
