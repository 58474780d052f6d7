package driverswitch_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/driverswitch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

func tokens(seconds int64) operatorv1.AddOnRegistrationDriver {
	d := operatorv1.AddOnRegistrationDriver{AuthType: string(driver.Token)}
	if seconds > 0 {
		d.Token = &operatorv1.TokenConfig{ExpirationSeconds: seconds}
	}
	return d
}

func TestDesired(t *testing.T) {
	t.Parallel()
	certificates := operatorv1.AddOnRegistrationDriver{AuthType: string(driver.CSR)}
	hour, standard := int64(3600), int64(0)
	for name, tc := range map[string]struct {
		live    operatorv1.AddOnRegistrationDriver
		to      driver.AuthType
		seconds *int64
		want    operatorv1.AddOnRegistrationDriver
		err     error
	}{
		"to tokens":                  {certificates, driver.Token, nil, tokens(0), nil},
		"to tokens of an hour":       {certificates, driver.Token, &hour, tokens(hour), nil},
		"the lifetime alone":         {tokens(60), "", &hour, tokens(hour), nil},
		"the lifetime is kept":       {tokens(60), driver.Token, nil, tokens(60), nil},
		"the default lifetime":       {tokens(60), "", &standard, tokens(0), nil},
		"back to certificates":       {tokens(60), driver.CSR, nil, certificates, nil},
		"a lifetime without tokens":  {certificates, "", &hour, certificates, driverswitch.ErrNoTokens},
		"a lifetime and no driver":   {operatorv1.AddOnRegistrationDriver{}, "", &hour, operatorv1.AddOnRegistrationDriver{}, driverswitch.ErrNoTokens},
		"nothing is set and changed": {operatorv1.AddOnRegistrationDriver{}, "", nil, operatorv1.AddOnRegistrationDriver{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := driverswitch.Desired(tc.live, tc.to, tc.seconds)
			if !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInFlags(t *testing.T) {
	t.Parallel()
	const auth, seconds = "--addon-kubeclient-registration-auth=", "--addon-token-expiration-seconds="
	for name, tc := range map[string]struct {
		args []string
		want operatorv1.AddOnRegistrationDriver
		in   bool
	}{
		"the default":           {nil, operatorv1.AddOnRegistrationDriver{}, true},
		"certificates":          {[]string{auth + "csr"}, operatorv1.AddOnRegistrationDriver{}, true},
		"tokens":                {[]string{auth + "token"}, tokens(0), true},
		"tokens of an hour":     {[]string{auth + "token", seconds + "3600"}, tokens(3600), true},
		"another lifetime":      {[]string{auth + "token", seconds + "60"}, tokens(3600), false},
		"an earlier lifetime":   {[]string{auth + "token", seconds + "60"}, tokens(0), false},
		"certificates so far":   {nil, tokens(0), false},
		"tokens are still used": {[]string{auth + "token"}, operatorv1.AddOnRegistrationDriver{AuthType: "csr"}, false},
	} {
		if got := driverswitch.InFlags(tc.args, tc.want); got != tc.in {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
