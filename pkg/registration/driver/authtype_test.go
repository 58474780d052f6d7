package driver_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// TestParse: no name falls back to another driver, except the empty one.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name           string
		cluster, addOn driver.AuthType
		problem        string
	}{
		{name: "", cluster: driver.CSR, addOn: driver.CSR},
		{name: "csr", cluster: driver.CSR, addOn: driver.CSR},
		{name: "awsirsa", cluster: driver.AWSIRSA},
		{name: "aws-irsa", cluster: driver.AWSIRSA},
		{name: "token", addOn: driver.Token},
		{name: "grpc", problem: "not available in this version: use csr or awsirsa"},
		{name: "CSR", problem: "use one of csr, awsirsa"},
	} {
		cluster, err := driver.ParseAuthType(tc.name)
		if cluster != tc.cluster || (err == nil) != (tc.cluster != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%q for a cluster: got %q, %v", tc.name, cluster, err)
		}
		addOn, err := driver.ParseAddOnAuthType(tc.name)
		if addOn != tc.addOn || (err == nil) != (tc.addOn != "") || err != nil && !strings.Contains(err.Error(), "use one of csr, token") {
			t.Errorf("%q for an add-on: got %q, %v", tc.name, addOn, err)
		}
	}
}
