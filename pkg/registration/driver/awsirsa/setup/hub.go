package setup

import (
	"maps"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/argument"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Setup is the driver.Setup of awsirsa.
type Setup struct{}

var _ driver.Setup = Setup{}

// Type implements driver.Setup.
func (Setup) Type() driver.AuthType { return identity.AuthType }

// Aliases implements driver.Setup.
func (Setup) Aliases() []string { return []string{identity.Alias} }

// AccountKeys implements driver.Setup.
func (Setup) AccountKeys() []string { return []string{identity.AnnotationRole} }

// Retain implements driver.HubSetup. A list that is empty but not nil is not left out.
func (Setup) Retain(wanted, live driver.HubSettings) driver.HubSettings {
	merged := hubspec.From(wanted).Over(hubspec.From(live))
	annotations := maps.Clone(wanted.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, merged.Annotations())
	return driver.HubSettings{Driver: merged.Driver(), Annotations: annotations}
}

// ValidateHub implements driver.HubSetup.
func (Setup) ValidateHub(settings driver.HubSettings) error {
	return hubspec.From(settings).Validate(hubspec.FieldNames())
}

// HubRuntime implements driver.HubSetup. Pods with an EKS Pod Identity association have its
// role instead of the one in the annotation.
func (Setup) HubRuntime(settings driver.HubSettings) driver.Runtime {
	spec := hubspec.From(settings)
	runtime := driver.Runtime{Args: hubArgs(spec)}
	if role, err := spec.Role(hubspec.FieldNames()); err == nil {
		runtime.Account = map[string]string{identity.AnnotationRole: role.String()}
	}
	if spec.UsesAWSAuth() {
		runtime.System = []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{awsauth.Name}, Verbs: []string{"get", "update"},
		}}
	}
	return runtime
}

// hubArgs are the flags of the registration controller.
func hubArgs(spec hubspec.Spec) []string {
	args := []string{"--" + hubspec.FlagCluster + "=" + spec.Cluster}
	for _, list := range []struct {
		flag   string
		values []string
	}{{hubspec.FlagApproved, spec.Approved}, {hubspec.FlagTags, spec.Tags}} {
		if len(list.values) > 0 {
			args = append(args, "--"+list.flag+"="+argument.List(list.values...))
		}
	}
	for _, single := range [][2]string{{hubspec.FlagMapping, spec.Mapping}, {hubspec.FlagPodIdentity, spec.PodIdentity}} {
		if single[1] != "" {
			args = append(args, "--"+strings.Join(single[:], "="))
		}
	}
	return args
}

// Grants implements driver.HubSetup.
func (Setup) Grants() driver.Grants {
	return driver.Grants{
		Kind: "AWS roles", HubFlag: hubspec.FlagCluster,
		HubOf: func(settings driver.HubSettings) string { return hubspec.From(settings).Cluster },
	}
}
