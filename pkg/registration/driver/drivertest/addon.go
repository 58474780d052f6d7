package drivertest

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AddOnSuite is a driver of add-ons with a hub to test it at.
type AddOnSuite struct {
	// New returns a driver as a new process would make it, for the only
	// registration in the add-on's status. Its namespace names the cluster.
	New func(*addonv1beta1.ManagedClusterAddOn) driver.AddOn
	// Registration is the registration in the status, as the add-on's hub controller
	// wrote it.
	Registration addonv1beta1.RegistrationConfig
	// Prefix begins the names of the clusters, so that several suites can
	// share a hub.
	Prefix string
	// Hub makes a place for a cluster on the hub and returns the connection of its
	// agent.
	Hub func(t *testing.T, cluster string) *rest.Config
	// Grant does on the hub what makes it issue the credential that the add-on
	// declared, and writes into the add-on's status what a hub would.
	Grant func(*testing.T, *addonv1beta1.ManagedClusterAddOn)
	// Refuse does on the hub what refuses it, and likewise.
	Refuse func(*testing.T, *addonv1beta1.ManagedClusterAddOn)
}

// RunAddOn runs the suite.
func RunAddOn(t *testing.T, s AddOnSuite) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, *addOnRun){
		"declares":      declares,
		"distinguished": ofRun[*addOnRun](distinguishesProblems),
		"stores-first":  ofRun[*addOnRun](storesFirst),
		"asks-once":     ofRun[*addOnRun](asksOnce),
		"issues":        ofRun[*addOnRun](issues),
		// Whether a second process is issued the same is the driver's affair.
		"issues-again": ofRun[*addOnRun](func(t *testing.T, r *run) { t.Helper(); issuesAgain(t, r) }),
		"refused":      ofRun[*addOnRun](func(t *testing.T, r *run) { t.Helper(); refused(t, r) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, newAddOnRun(t, s, s.Prefix+"-"+name))
		})
	}
}

// addOnRun is a run of the agent of an add-on's cluster.
type addOnRun struct {
	run

	suite AddOnSuite
	addOn *addonv1beta1.ManagedClusterAddOn
}

func newAddOnRun(t *testing.T, s AddOnSuite, cluster string) *addOnRun {
	t.Helper()
	r := &addOnRun{suite: s, addOn: &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon1"},
		Status:     addonv1beta1.ManagedClusterAddOnStatus{Registrations: []addonv1beta1.RegistrationConfig{*s.Registration.DeepCopy()}},
	}}
	// Before anything else an agent declares the registration, in the add-on's status.
	r.begin = func() driver.Credential {
		r.addOn.Status.Registrations[0] = r.driver().Declare()
		return r.driver()
	}
	r.stranger = r.another
	r.grant = func(t *testing.T) { t.Helper(); s.Grant(t, r.addOn); r.restart() }
	r.refuse = func(t *testing.T) { t.Helper(); s.Refuse(t, r.addOn) }
	r.stored = func(_ *testing.T, issued *driver.Issued) driver.Data { return maps.Clone(issued.Data) }
	r.connect(t, s.Hub(t, cluster))
	return r
}

// driver returns the driver as a newly started process creates it.
func (r *addOnRun) driver() driver.AddOn { return r.suite.New(r.addOn.DeepCopy()) }

// another is the driver of another add-on.
func (r *addOnRun) another() driver.Credential {
	other := r.addOn.DeepCopy()
	other.Name = "addon2"
	other.Status.Conditions = nil
	registration := &other.Status.Registrations[0]
	if registration.Type == addonv1beta1.CustomSigner {
		// The hub controller of another add-on sets another subject.
		registration.CustomSigner.Subject.User += "2"
	} else {
		*registration = *r.suite.Registration.DeepCopy()
	}
	return r.suite.New(other)
}

func declares(t *testing.T, r *addOnRun) {
	t.Helper()
	before := r.addOn.DeepCopy()
	declared := r.suite.New(r.addOn).Declare()
	if diff := cmp.Diff(before, r.addOn); diff != "" {
		t.Errorf("it changed what it was given: %s", diff)
	}
	if declared.Type != r.suite.Registration.Type {
		t.Errorf("it declares type %s", declared.Type)
	}
	switch declared.Type {
	case addonv1beta1.KubeClient:
		if declared.KubeClient == nil || declared.KubeClient.Driver == "" || declared.KubeClient.Subject.User == "" {
			t.Errorf("it declares no driver and user: %+v", declared.KubeClient)
		}
	case addonv1beta1.CustomSigner:
		if declared.CustomSigner == nil || declared.CustomSigner.Subject.User == "" {
			t.Errorf("it declares no user: %+v", declared.CustomSigner)
		}
	}
	r.addOn.Status.Registrations[0] = declared
	if diff := cmp.Diff(declared, r.driver().Declare()); diff != "" {
		t.Errorf("declared, it declares something else: %s", diff)
	}
	r.obtain(t)
	if diff := cmp.Diff(declared, r.driver().Declare()); diff != "" {
		t.Errorf("granted, it declares something else: %s", diff)
	}
}
