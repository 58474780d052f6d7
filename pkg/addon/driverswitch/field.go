package driverswitch

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// ErrNoTokens reports a lifetime of tokens for add-ons that use certificates.
var ErrNoTokens = errors.New("the add-ons of this cluster use certificates")

// Desired returns the field of the Klusterlet with another driver and lifetime of tokens, in
// seconds. An empty driver and a nil lifetime keep the live ones; 0 seconds is the default.
func Desired(live operatorv1.AddOnRegistrationDriver, to driver.AuthType, seconds *int64) (operatorv1.AddOnRegistrationDriver, error) {
	want := operatorv1.AddOnRegistrationDriver{AuthType: cmp.Or(string(to), live.AuthType)}
	if want.AuthType != string(driver.Token) {
		if seconds != nil {
			return want, ErrNoTokens
		}
		return want, nil
	}
	switch {
	case seconds == nil:
		want.Token = live.Token
	case *seconds > 0:
		want.Token = &operatorv1.TokenConfig{ExpirationSeconds: *seconds}
	}
	return want, nil
}

// AuthType returns the driver of the field; the default is certificates.
func AuthType(want operatorv1.AddOnRegistrationDriver) driver.AuthType {
	return cmp.Or(driver.AuthType(want.AuthType), driver.CSR)
}

// InFlags reports whether the flags of an agent are those for the field.
func InFlags(args []string, want operatorv1.AddOnRegistrationDriver) bool {
	auth, seconds := "", ""
	for _, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--addon-kubeclient-registration-auth="); ok {
			auth = v
		}
		if v, ok := strings.CutPrefix(arg, "--addon-token-expiration-seconds="); ok {
			seconds = v
		}
	}
	wanted := ""
	if want.Token != nil && want.Token.ExpirationSeconds > 0 {
		wanted = strconv.FormatInt(want.Token.ExpirationSeconds, 10)
	}
	return cmp.Or(auth, string(driver.CSR)) == string(AuthType(want)) && seconds == wanted
}

// Disabled reports whether the agent of a Klusterlet registers no add-ons.
func Disabled(k *operatorv1.Klusterlet) bool {
	c := k.Spec.RegistrationConfiguration
	return c != nil && slices.Contains(c.FeatureGates, operatorv1.FeatureGate{Feature: "AddonManagement", Mode: operatorv1.FeatureGateModeTypeDisable})
}
