package driver_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

func TestParseAddOn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]driver.AuthType{"": driver.CSR, "csr": driver.CSR, "token": driver.Token, "awsirsa": "", "grpc": "", "CSR": ""} {
		got, err := driver.ParseAddOnAuthType(name)
		if got != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "use one of csr, token") {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}
