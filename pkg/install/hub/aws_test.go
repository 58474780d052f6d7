package hub_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

const (
	hubARN      = "arn:aws:eks:eu-west-1:123456789012:cluster/hub"
	creatorRole = "arn:aws:iam::123456789012:role/creator"
)

// eksHub is a hub whose clusters register by AWS IAM.
func eksHub(spec hubspec.Spec) hub.Values {
	return hub.Values{Catalog: drivers.All(), Drivers: []driver.HubSettings{{Driver: spec.Driver(), Annotations: spec.Annotations()}}}
}

func csrHub() hub.Values {
	return hub.Values{Catalog: drivers.All(), Drivers: []driver.HubSettings{{Driver: operatorv1.RegistrationDriverHub{AuthType: "csr"}}}}
}

// TestAWSSettingsAreKept: what is not said again stays, the annotations too, and
// goes with the driver.
func TestAWSSettingsAreKept(t *testing.T) {
	t.Parallel()
	full := hubspec.Spec{
		Cluster: hubARN, Approved: []string{"a"}, Tags: []string{"k=v"}, Mapping: "aws-auth", Creator: creatorRole, PodIdentity: "true",
	}
	live := eksHub(full).Over(nil)
	for name, values := range map[string]hub.Values{"nothing said": {Catalog: drivers.All()}, "the driver": eksHub(hubspec.Spec{}), "the same": eksHub(full)} {
		if diff := cmp.Diff(live, values.Over(live)); diff != "" {
			t.Errorf("%s (-live +got):\n%s", name, diff)
		}
	}
	got, _ := hubspec.Of(eksHub(hubspec.Spec{Approved: []string{}, Mapping: "auto"}).Over(live))
	want := full
	want.Approved, want.Mapping = []string{}, "auto"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gone := csrHub().Over(live)
	if _, ok := hubspec.Of(gone); ok || gone.Annotations[hubspec.AnnotationCreator] != "" {
		t.Errorf("the driver is gone, and left %v", gone.Annotations)
	}
}

// TestDriversAreKept: a driver that is added, or said more about, takes nothing from
// others.
func TestDriversAreKept(t *testing.T) {
	t.Parallel()
	users := func(names ...string) operatorv1.RegistrationDriverHub {
		return operatorv1.RegistrationDriverHub{AuthType: "csr", CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: names}}
	}
	aws := hubspec.Spec{Cluster: hubARN}
	live := hub.Values{Catalog: drivers.All(), Drivers: []driver.HubSettings{{Driver: users("alice")}}}.Over(nil)
	added := eksHub(aws)
	added.Drivers = append(added.Drivers, csrHub().Drivers...)
	live = added.Over(live)
	want := []operatorv1.RegistrationDriverHub{aws.Driver(), users("alice")}
	if diff := cmp.Diff(want, live.Spec.RegistrationConfiguration.RegistrationDrivers); diff != "" {
		t.Errorf("awsirsa was added (-want +got):\n%s", diff)
	}
	live = hub.Values{Catalog: drivers.All(), KeepDrivers: true, Drivers: []driver.HubSettings{{Driver: users("bob")}}}.Over(live)
	want = []operatorv1.RegistrationDriverHub{users("bob"), aws.Driver()}
	if diff := cmp.Diff(want, live.Spec.RegistrationConfiguration.RegistrationDrivers); diff != "" {
		t.Errorf("users were changed (-want +got):\n%s", diff)
	}
}

// TestCheckAWS: settings that together cannot work, and a driver that clusters
// need.
func TestCheckAWS(t *testing.T) {
	t.Parallel()
	const other = "arn:aws:eks:eu-west-1:210987654321:cluster/hub"
	live := eksHub(hubspec.Spec{Cluster: hubARN, Creator: creatorRole}).Over(nil)
	withCSR := both().Over(live)
	clusters := map[driver.AuthType][]string{"awsirsa": {"c1", "c2"}}
	for name, tc := range map[string]struct {
		facts install.Facts
		hub   hub.Values
		want  bool
	}{
		"a new hub":                        {hub: eksHub(hubspec.Spec{Cluster: hubARN})},
		"nothing changes":                  {facts: install.Facts{Manager: live, Granted: clusters}},
		"csr in addition":                  {facts: install.Facts{Manager: live, Granted: clusters}, hub: both()},
		"the driver goes":                  {facts: install.Facts{Manager: live, Granted: clusters}, hub: csrHub(), want: true},
		"csr goes":                         {facts: install.Facts{Manager: withCSR, Granted: clusters}, hub: eksHub(hubspec.Spec{})},
		"the driver goes, nobody needs it": {facts: install.Facts{Manager: live}, hub: csrHub()},
		"another hub":                      {facts: install.Facts{Manager: live, Granted: clusters}, hub: eksHub(hubspec.Spec{Cluster: hubARN + "2"}), want: true},
		"another account than the role's":  {facts: install.Facts{Manager: live}, hub: eksHub(hubspec.Spec{Cluster: other}), want: true},
	} {
		got := slices.ContainsFunc(hub.Check(tc.facts, tc.hub), func(f install.Finding) bool {
			return f.Check == install.CheckDriver && f.Severity == install.Fatal
		})
		if got != tc.want {
			t.Errorf("%s: found %v", name, got)
		}
	}
}

func both() hub.Values {
	h := eksHub(hubspec.Spec{})
	h.Drivers = append(h.Drivers, csrHub().Drivers...)
	return h
}
