package csr

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AddOnConfig is the configuration of an AddOn.
type AddOnConfig struct {
	// Cluster is the name of the ManagedCluster and of its namespace on the hub.
	Cluster string
	// AddOn is the add-on as last seen on the hub. It is not changed.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// Registration is a registration in the add-on's status, of either type.
	Registration addonv1beta1.RegistrationConfig
	// ExpirationSeconds is the requested lifetime; 0 leaves it to the signer.
	ExpirationSeconds int32
	// Clock evaluates certificates and back-offs.
	Clock clock.PassiveClock
}

// AddOn obtains client certificates for one registration of an add-on, for the hub's
// API server (kubeClient) or for servers that trust the add-on's own signer
// (customSigner). The add-on's hub controller approves its CSRs, or the add-on manager if
// it is made from an AddOnTemplate; the registration controllers do not.
type AddOn struct {
	requester

	declared addonv1beta1.RegistrationConfig
}

var _ driver.AddOn = (*AddOn)(nil)

// NewAddOn returns the driver for config.
func NewAddOn(config AddOnConfig) *AddOn {
	declared, decider := declare(config), deciderOf(config)
	w := wanted{
		owner:    fmt.Sprintf("add-on %s of %s", config.AddOn.Name, config.Cluster),
		dnsNames: []string{names.AddOnDNSName(config.AddOn.Name)},
		prefix:   fmt.Sprintf("addon-%s-%s", config.Cluster, config.AddOn.Name),
		labels: map[string]string{
			names.LabelClusterName: config.Cluster,
			names.LabelAddOnName:   config.AddOn.Name,
		},
		expirationSeconds: config.ExpirationSeconds,
		words: words{
			approve: func(name, fingerprint string) string {
				return fmt.Sprintf("waiting for %s to approve CertificateSigningRequest %s (key fingerprint %s); %s", decider.who, name, fingerprint, decider.hint)
			},
			sign: waitsForHubSigner,
		},
	}
	if custom := declared.CustomSigner; declared.Type == addonv1beta1.CustomSigner {
		w.signer = custom.SignerName
		w.user, w.groups, w.units = custom.Subject.User, sorted(custom.Subject.Groups), sorted(custom.Subject.OrganizationUnits)
		w.words.sign = func(name string) string {
			return fmt.Sprintf("CertificateSigningRequest %s is approved, and waits for %s to sign it for the signer %s; %s", name, decider.who, custom.SignerName, decider.hint)
		}
	} else {
		subject := declared.KubeClient.Subject
		w.signer = certificatesv1.KubeAPIServerClientSignerName
		w.user, w.groups = subject.User, sorted(subject.Groups)
	}
	w.distinction = slices.Concat([]string{"", w.signer}, w.units)
	return &AddOn{declared: declared, requester: requester{wanted: w, clock: config.Clock}}
}

// decider is the component of the hub that decides about the requests of an add-on.
type decider struct {
	who string
	// hint says where to look while it does not decide.
	hint string
}

func deciderOf(config AddOnConfig) decider {
	templated := slices.ContainsFunc(config.AddOn.Status.ConfigReferences, func(r addonv1beta1.ConfigReference) bool {
		return r.Group == addonv1beta1.GroupName && r.Resource == names.ResourceAddOnTemplates
	})
	switch {
	case !templated:
		return decider{"the hub controller of add-on " + config.AddOn.Name, "check on the hub that the controller runs"}
	case config.Registration.Type == addonv1beta1.CustomSigner:
		return decider{"the add-on manager of the hub", "the condition " + names.ConditionCustomSignersGranted + " and events of the request say what it lacks"}
	}
	return decider{"the add-on manager of the hub", "events of the request say why it does not"}
}

// Declare implements driver.AddOn: driver csr for a kubeClient registration, and the
// add-on's default user and groups if its hub controller set none. A subject of the
// token driver counts as none.
func (a *AddOn) Declare() addonv1beta1.RegistrationConfig { return *a.declared.DeepCopy() }

// Report implements driver.Credential.
func (a *AddOn) Report() driver.Report {
	report := a.requester.Report()
	report.Event = names.EventAddOnCertificateRotated
	return report
}

// declare sets the fields that the add-on's hub controller did not set.
// See docs/reference/wire-contract.md#addon-user.
func declare(config AddOnConfig) addonv1beta1.RegistrationConfig {
	declared := *config.Registration.DeepCopy()
	defaultUser := names.AddOnUser(config.Cluster, config.AddOn.Name, config.AddOn.Name)
	if declared.Type == addonv1beta1.CustomSigner {
		if declared.CustomSigner == nil {
			declared.CustomSigner = &addonv1beta1.CustomSignerConfig{}
		}
		if declared.CustomSigner.Subject.User == "" {
			declared.CustomSigner.Subject.User = defaultUser
		}
		return declared
	}
	if declared.KubeClient == nil {
		declared.KubeClient = &addonv1beta1.KubeClientConfig{}
	}
	subject := &declared.KubeClient.Subject
	declared.KubeClient.Driver = string(driver.CSR)
	if _, _, ok := names.ParseServiceAccountUser(subject.User); ok || subject.User == "" {
		// What the token driver left behind is never asked for as a certificate.
		subject.User = defaultUser
	}
	if len(subject.Groups) == 0 {
		subject.Groups = []string{names.AddOnClusterGroup(config.Cluster, config.AddOn.Name), names.AddOnGroup(config.AddOn.Name)}
	}
	return declared
}
