package drivertest_test

import (
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

// TestFakeGranter: the fake driver, by which the grant controller is tested, does
// what every driver must.
func TestFakeGranter(t *testing.T) {
	t.Parallel()
	drivertest.RunGranter(t, fakeSuite)
}

// TestFakeGranterOfSlowService: neither does a service that takes its time matter.
func TestFakeGranterOfSlowService(t *testing.T) {
	t.Parallel()
	drivertest.RunGranter(t, func(t *testing.T) drivertest.GranterSuite {
		t.Helper()
		outside := drivertest.NewOutside()
		outside.Settle(2)
		return suite(outside)
	})
}

func fakeSuite(t *testing.T) drivertest.GranterSuite {
	t.Helper()
	return suite(drivertest.NewOutside())
}

func suite(outside *drivertest.Outside) drivertest.GranterSuite {
	wanted := func(plan driver.Grant) []string {
		return []string{
			plan.Data["entry"] + " is group " + plan.Subjects[0].Name,
			plan.Data["role"] + " is trusting " + plan.Key,
		}
	}
	set := func(key, content string) func(*testing.T, driver.Grant) {
		return func(_ *testing.T, plan driver.Grant) { outside.Set(plan.Data[key], content) }
	}
	return drivertest.GranterSuite{
		Driver:   func() driver.Granter { return &drivertest.FakeGranter{Outside: outside} },
		Register: drivertest.FakeIdentity, Annotations: []string{drivertest.FakeAnnotation},
		Spoiled: []map[string]string{
			{drivertest.FakeAnnotation: ""}, {drivertest.FakeAnnotation: "one"}, drivertest.FakeIdentity(""),
		},
		Fail:     outside.Fail,
		Requests: outside.Calls,
		Drift: map[string]func(*testing.T, driver.Grant){
			"the role trusts another": set("role", "trusting another"),
			"the role is gone":        set("role", ""),
			"the entry is another's":  set("entry", "group another"),
			"the entry is gone":       set("entry", ""),
		},
		Missing: func(_ *testing.T, plan driver.Grant) []string {
			return slices.DeleteFunc(wanted(plan), func(w string) bool { return slices.Contains(outside.Objects(), w) })
		},
		Left: func(_ *testing.T, plan driver.Grant) []string {
			return slices.DeleteFunc(wanted(plan), func(w string) bool { return !slices.Contains(outside.Objects(), w) })
		},
	}
}
