package source

import (
	"cmp"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Registrations returns how an add-on registers. The agent sets the driver of a
// kubeClient registration and the subject of a token; both are retained.
func Registrations(addOn *addonv1beta1.ManagedClusterAddOn, template *addonv1alpha1.AddOnTemplateSpec) []addonv1beta1.RegistrationConfig {
	var registrations []addonv1beta1.RegistrationConfig
	for _, r := range template.Registration {
		switch {
		case r.Type == addonv1alpha1.RegistrationTypeKubeClient:
			registrations = append(registrations, addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: kubeClient(addOn)})
		case r.Type == addonv1alpha1.RegistrationTypeCustomSigner && r.CustomSigner != nil:
			registrations = append(registrations, addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
				SignerName: r.CustomSigner.SignerName, Subject: Subject(addOn, r.CustomSigner),
			}})
		}
	}
	return registrations
}

func kubeClient(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.KubeClientConfig {
	config := &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{BaseSubject: Default(addOn)}}
	if i := slices.IndexFunc(addOn.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
		return r.Type == addonv1beta1.KubeClient && r.KubeClient != nil
	}); i >= 0 {
		config.Driver = addOn.Status.Registrations[i].KubeClient.Driver
		if config.Driver == string(driver.Token) {
			config.Subject = addOn.Status.Registrations[i].KubeClient.Subject
		}
	}
	return config
}

// Default is the subject of the certificates of an add-on.
// See docs/reference/wire-contract.md#addon-user.
func Default(addOn *addonv1beta1.ManagedClusterAddOn) addonv1beta1.BaseSubject {
	return addonv1beta1.BaseSubject{
		User:   defaultUser(addOn),
		Groups: []string{names.AddOnClusterGroup(addOn.Namespace, addOn.Name), names.AddOnGroup(addOn.Name)},
	}
}

func defaultUser(addOn *addonv1beta1.ManagedClusterAddOn) string {
	return names.AddOnUser(addOn.Namespace, addOn.Name, names.AddOnTemplateAgent(addOn.Name))
}

// Subject is the subject of the certificate that a signer of the template issues.
func Subject(addOn *addonv1beta1.ManagedClusterAddOn, signer *addonv1alpha1.CustomSignerRegistrationConfig) addonv1beta1.Subject {
	if signer.Subject == nil {
		return addonv1beta1.Subject{BaseSubject: Default(addOn)}
	}
	return addonv1beta1.Subject{
		BaseSubject: addonv1beta1.BaseSubject{
			User: cmp.Or(signer.Subject.User, defaultUser(addOn)), Groups: signer.Subject.Groups,
		},
		OrganizationUnits: signer.Subject.OrganizationUnits,
	}
}
