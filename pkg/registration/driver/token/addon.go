package token

import (
	"fmt"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// DefaultExpirationSeconds is the default requested lifetime: one year.
// See docs/reference/wire-contract.md#token-refresh.
const DefaultExpirationSeconds int64 = 365 * 24 * 60 * 60

// Config is the configuration of an AddOn.
type Config struct {
	// Cluster is the name of the ManagedCluster and of its namespace on the hub.
	Cluster string
	// AddOn is the add-on as last seen on the hub. It is not changed.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// Registration is the kubeClient registration in the add-on's status.
	Registration addonv1beta1.RegistrationConfig
	// ExpirationSeconds is the lifetime to ask for, 0 for the default. The hub
	// may issue a shorter one, which then counts.
	ExpirationSeconds int64
	// Clock evaluates newly issued tokens.
	Clock clock.PassiveClock
}

// AddOn obtains tokens for one kubeClient registration. It has no state: its
// pending data are always empty.
type AddOn struct {
	config Config
	infra  infrastructure
}

var _ driver.AddOn = (*AddOn)(nil)

// NewAddOn returns the driver for config.
func NewAddOn(config Config) *AddOn {
	if config.ExpirationSeconds == 0 {
		config.ExpirationSeconds = DefaultExpirationSeconds
	}
	return &AddOn{config: config, infra: readInfrastructure(config.Cluster, config.AddOn)}
}

// Declare implements driver.AddOn: driver token, and as the subject the user of a
// ServiceAccount, without groups. The hub decides which of the two allowed
// ServiceAccounts it is, so that hubs that create upstream's are supported. Until then,
// Declare retains the subject in the status if it is allowed; the default is this
// project's ServiceAccount, which its hub creates for the subject. The status must
// therefore be written with an optimistic lock, or hub and agent could follow each
// other in turns.
func (a *AddOn) Declare() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{
			Driver: string(driver.Token),
			Subject: addonv1beta1.KubeClientSubject{
				BaseSubject: addonv1beta1.BaseSubject{User: names.ServiceAccountUser(a.config.Cluster, a.serviceAccount())},
			},
		},
	}
}

// Inspect implements driver.Credential. Until the hub reports the ServiceAccount it
// accepts any UID, so that a valid token is retained while the hub is repaired.
func (a *AddOn) Inspect(stored driver.Data) (credential.Validity, error) {
	claims, err := parse(stored[names.KeyToken])
	if err != nil {
		return credential.Validity{}, err
	}
	return claims.validFor(names.TokenServiceAccount{Namespace: a.config.Cluster, Name: a.serviceAccount(), UID: a.infra.uid()})
}

// User implements driver.Credential.
func (a *AddOn) User() clientcmdapi.AuthInfo { return clientcmdapi.AuthInfo{TokenFile: names.KeyToken} }

// Renewal implements driver.Credential.
func (a *AddOn) Renewal() credential.RenewalPolicy { return credential.Tokens() }

// Report implements driver.Credential. The message of OCM's condition has room
// for one time only, the end.
func (a *AddOn) Report() driver.Report {
	return driver.Report{
		Conditions: []string{names.ConditionTokenRefreshed, names.ConditionAddOnTokenRefreshed},
		Valid: func(v credential.Validity) driver.Waiting {
			return driver.Waiting{Reason: names.ReasonAddOnTokenRefreshed, Message: fmt.Sprintf(names.MessageAddOnTokenRefreshed, credential.Timestamp(v.NotAfter))}
		},
		Since: true,
		Event: names.EventAddOnTokenRefreshed,
		Failed: func(w driver.Waiting) driver.Waiting {
			return driver.Waiting{Reason: names.ReasonTokenCreationFailed, Message: fmt.Sprintf(names.MessageTokenCreationFailed, w.Message)}
		},
	}
}

// serviceAccount is the name of the ServiceAccount that the add-on is to be.
func (a *AddOn) serviceAccount() string {
	if a.infra.ready() {
		return a.infra.account.Name
	}
	allowed := names.AddOnServiceAccounts(a.config.Cluster, a.config.AddOn.Name)
	if current := a.config.Registration.KubeClient; current != nil && current.Driver == string(driver.Token) {
		namespace, name, ok := names.ParseServiceAccountUser(current.Subject.User)
		if ok && namespace == a.config.Cluster && slices.Contains(allowed, name) {
			return name
		}
	}
	return allowed[0]
}
