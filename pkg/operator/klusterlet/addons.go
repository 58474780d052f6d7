package klusterlet

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// The condition that reports how add-ons of this cluster get their credentials, and
// its reasons. It is also True for a configuration that works but is risky.
const (
	ConditionAddOnRegistration = "AddOnRegistrationConfigured"
	// ReasonAddOnRegistration is the reason of a valid configuration.
	ReasonAddOnRegistration = "AddOnRegistrationConfigured"
	// ReasonShortTokens is the reason of a token lifetime that is meant for tests.
	ReasonShortTokens = "TokenExpirationShort"
)

// Lifetimes of add-on tokens in seconds: every API server rejects less than the
// first, and less than the second is meant for tests.
const (
	minTokenSeconds     = 600
	advisedTokenSeconds = 3600
)

// addOnArgs returns the agent's flags for add-on credentials. Without them the agent
// uses certificates, and tokens with a lifetime of a year.
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

// tokenSeconds returns the requested token lifetime, 0 for the default or without
// tokens.
func tokenSeconds(d *operatorv1.AddOnRegistrationDriver) int64 {
	if d == nil || d.AuthType != string(driver.Token) || d.Token == nil {
		return 0
	}
	return d.Token.ExpirationSeconds
}

// addOnProblem returns why an agent would not start with this configuration, and
// what to do; it is empty for a valid one. A running agent retains its settings.
func addOnProblem(d *operatorv1.AddOnRegistrationDriver) string {
	if d == nil {
		return ""
	}
	const field = "spec.registrationConfiguration.addOnKubeClientRegistrationDriver"
	if _, err := driver.ParseAddOnAuthType(d.AuthType); err != nil {
		return fmt.Sprintf("%s.authType: %v", field, err)
	}
	if seconds := tokenSeconds(d); seconds != 0 && seconds < minTokenSeconds {
		return fmt.Sprintf("%s.token.expirationSeconds is %d: use at least %d, the shortest lifetime that a hub allows, or 0 for a year", field, seconds, minTokenSeconds)
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
		c.Message = "add-ons get hub tokens that are valid for a year"
	case seconds < advisedTokenSeconds:
		c.Reason = ReasonShortTokens
		c.Message = fmt.Sprintf("add-ons get hub tokens that are valid for only %d seconds, which is meant for tests: use at least %d", seconds, advisedTokenSeconds)
	default:
		c.Message = fmt.Sprintf("add-ons get hub tokens that are valid for %d seconds", seconds)
	}
	return c
}
