package drivers_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		want    driver.AuthType
		problem string
	}{
		"":         {want: "csr"},
		"csr":      {want: "csr"},
		"awsirsa":  {want: "awsirsa"},
		"aws-irsa": {want: "awsirsa"},
		"grpc":     {problem: "not available in this version: use csr or awsirsa"},
		"token":    {problem: "use one of csr, awsirsa"},
		"CSR":      {problem: "use one of csr, awsirsa"},
	} {
		setup, err := drivers.All().Parse(name)
		var got driver.AuthType
		if setup != nil {
			got = setup.Type()
		}
		if got != tc.want || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
	if setup, err := (driver.Catalog{}).Parse(""); err == nil {
		t.Errorf("an empty catalog has %v", setup)
	}
}
