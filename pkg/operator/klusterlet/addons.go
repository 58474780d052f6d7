package klusterlet

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// The condition that tells how add-ons of this cluster get their credentials,
// and its reasons. It is True where the agent can do that as well as where it
// should better be done otherwise.
const (
	ConditionAddOnRegistration = "AddOnRegistrationConfigured"
	// ReasonAddOnRegistration is that of a configuration that nothing is wrong with.
	ReasonAddOnRegistration = "AddOnRegistrationConfigured"
	// ReasonShortTokens advises against tokens that live so shortly.
	ReasonShortTokens = "TokenExpirationShort"
)

// Lives of add-on tokens in seconds: below the first they are refused by every
// API server, below the second they are for tests.
const (
	minTokenSeconds     = 600
	advisedTokenSeconds = 3600
)

// addOnArgs say how add-ons get their credentials. Without them the agent uses
// certificates, and tokens of a year.
func addOnArgs(d *operatorv1.AddOnRegistrationDriver) []string {
	if d == nil || d.AuthType == "" {
		return nil
	}
	args := []string{"--addon-kubeclient-registration-auth=" + d.AuthType}
	if seconds := tokenSeconds(d); seconds != 0 {
		args = append(args, fmt.Sprintf("--addon-token-expiration-seconds=%d", seconds))
	}
	return args
}

// tokenSeconds is the life of tokens that is asked for, 0 for the default or
// where there are no tokens.
func tokenSeconds(d *operatorv1.AddOnRegistrationDriver) int64 {
	if d == nil || d.AuthType != string(driver.Token) || d.Token == nil {
		return 0
	}
	return d.Token.ExpirationSeconds
}

// addOnProblem says why an agent would not start with this configuration, and
// what to do; it is empty where it would. An agent that runs goes on as it is.
func addOnProblem(d *operatorv1.AddOnRegistrationDriver) string {
	if d == nil {
		return ""
	}
	const field = "spec.registrationConfiguration.addOnKubeClientRegistrationDriver"
	if _, err := driver.ParseAddOnAuthType(d.AuthType); err != nil {
		return fmt.Sprintf("%s.authType: %v", field, err)
	}
	if seconds := tokenSeconds(d); seconds != 0 && seconds < minTokenSeconds {
		return fmt.Sprintf("%s.token.expirationSeconds is %d: use at least %d, the shortest life that a hub gives, or 0 for a year", field, seconds, minTokenSeconds)
	}
	return ""
}

func addOnCondition(k *operatorv1.Klusterlet) metav1.Condition {
	var d *operatorv1.AddOnRegistrationDriver
	if c := k.Spec.RegistrationConfiguration; c != nil {
		d = c.AddOnKubeClientRegistrationDriver
	}
	c := metav1.Condition{Type: ConditionAddOnRegistration, Status: metav1.ConditionTrue, Reason: ReasonAddOnRegistration}
	seconds := tokenSeconds(d)
	switch problem := addOnProblem(d); {
	case problem != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonAddOnDriverNotSupported, problem
	case d == nil || d.AuthType != string(driver.Token):
		c.Message = "add-ons get client certificates for the hub"
	case seconds == 0:
		c.Message = "add-ons get tokens for the hub that live for a year"
	case seconds < advisedTokenSeconds:
		c.Reason = ReasonShortTokens
		c.Message = fmt.Sprintf("add-ons get tokens for the hub that live for %d seconds only, which is meant for tests: use at least %d", seconds, advisedTokenSeconds)
	default:
		c.Message = fmt.Sprintf("add-ons get tokens for the hub that live for %d seconds", seconds)
	}
	return c
}
