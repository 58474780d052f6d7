package drivertest

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AddOnSuite is a driver of add-ons with a hub to test it at.
type AddOnSuite struct {
	// New returns a driver as a new process would make it, for the only
	// registration in the add-on's status. Its namespace names the cluster.
	New func(*addonv1beta1.ManagedClusterAddOn) driver.AddOn
	// Registration is what the add-on's hub controller wrote into the status.
	Registration addonv1beta1.RegistrationConfig
	// Prefix begins the names of the clusters, so that several suites can
	// share a hub.
	Prefix string
	// Hub makes a place for a cluster on the hub and returns a client with the
	// rights of its agent.
	Hub func(t *testing.T, cluster string) client.WithWatch
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
		"distinguished": addOnDistinguishesProblems,
		"stores-first":  addOnStoresFirst,
		"asks-once":     addOnAsksOnce,
		"issues":        addOnIssues,
		"issues-again":  addOnIssuesAgain,
		"refused":       addOnRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAddOnRun(s, s.Prefix+"-"+name, "addon1")
			r.hub = r.counting(s.Hub(t, r.addOn.Namespace))
			check(t, r)
		})
	}
}

// addOnRun is an add-on and an agent whose process may be replaced at any time.
type addOnRun struct {
	requests

	suite   AddOnSuite
	addOn   *addonv1beta1.ManagedClusterAddOn
	pending driver.Data
	hub     client.WithWatch
}

func newAddOnRun(s AddOnSuite, cluster, name string) *addOnRun {
	return &addOnRun{suite: s, addOn: &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
		Status:     addonv1beta1.ManagedClusterAddOnStatus{Registrations: []addonv1beta1.RegistrationConfig{*s.Registration.DeepCopy()}},
	}}
}

// driver is what a process that has just started has.
func (r *addOnRun) driver() driver.AddOn { return r.suite.New(r.addOn.DeepCopy()) }

// step declares, as an agent does before anything else, and takes a step.
func (r *addOnRun) step(t *testing.T) (driver.Step, error) {
	t.Helper()
	r.addOn.Status.Registrations[0] = r.driver().Declare()
	step, err := r.driver().Obtain(t.Context(), r.hub, maps.Clone(r.pending))
	if err == nil {
		r.pending = step.Pending
	}
	return step, err
}

// untilWaiting takes steps until one waits or issues a credential.
func (r *addOnRun) untilWaiting(t *testing.T) (driver.Step, error) {
	t.Helper()
	for range maxSteps {
		step, err := r.step(t)
		if err != nil {
			return step, err
		}
		if step.Again {
			continue
		}
		if step.Issued == nil && (step.Waiting.Reason == "" || step.Waiting.Message == "") {
			t.Fatalf("it waits without words: %+v", step.Waiting)
		}
		if step.Issued == nil && step.Watch == nil && step.After == 0 {
			t.Fatalf("it waits without saying for what: %+v", step.Waiting)
		}
		return step, nil
	}
	t.Fatalf("%d steps and no end", maxSteps)
	return driver.Step{}, nil
}

func (r *addOnRun) untilIssued(t *testing.T) *driver.Issued {
	t.Helper()
	for range int(patience / pace) {
		step, err := r.untilWaiting(t)
		if err != nil {
			t.Fatalf("step: %v", err)
		}
		if step.Issued != nil {
			return step.Issued
		}
		clock.RealClock{}.Sleep(pace)
	}
	t.Fatal("nothing was issued")
	return nil
}

// grant asks for a credential, has it granted, and returns it.
func (r *addOnRun) grant(t *testing.T) *driver.Issued {
	t.Helper()
	if step, err := r.untilWaiting(t); err != nil || step.Issued != nil {
		t.Fatalf("with nothing granted it says %+v, %v", step, err)
	}
	r.suite.Grant(t, r.addOn)
	return r.untilIssued(t)
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
	r.grant(t)
	if diff := cmp.Diff(declared, r.driver().Declare()); diff != "" {
		t.Errorf("granted, it declares something else: %s", diff)
	}
}

func addOnDistinguishesProblems(t *testing.T, r *addOnRun) {
	t.Helper()
	if _, err := r.driver().Inspect(nil); !errors.Is(err, credential.ErrMissing) {
		t.Errorf("nothing at all: got %v, want it to be missing", err)
	}
	issued := r.grant(t)
	stranger := newAddOnRun(r.suite, r.addOn.Namespace, "addon2")
	if registration := r.addOn.Status.Registrations[0]; registration.Type == addonv1beta1.CustomSigner {
		// The hub controller of another add-on sets another subject.
		other := registration.DeepCopy()
		other.CustomSigner.Subject.User += "2"
		stranger.addOn.Status.Registrations[0] = *other
	}
	if _, err := stranger.driver().Inspect(issued.Data); !errors.Is(err, credential.ErrWrongIdentity) {
		t.Errorf("another add-on's: got %v, want it to be of the wrong identity", err)
	}
	user := r.driver().User()
	for _, file := range []string{user.ClientCertificate, user.ClientKey, user.TokenFile} {
		if file == "" {
			continue
		}
		broken := maps.Clone(issued.Data)
		broken[file] = []byte("broken")
		if _, err := r.driver().Inspect(broken); !errors.Is(err, credential.ErrMalformed) {
			t.Errorf("a broken %s: got %v, want it to be malformed", file, err)
		}
	}
}

func addOnStoresFirst(t *testing.T, r *addOnRun) {
	t.Helper()
	for range maxSteps {
		stored, writes := r.pending, r.writes.Load()
		step, err := r.step(t)
		if err != nil {
			t.Fatal(err)
		}
		if r.writes.Load() > writes && len(stored) == 0 {
			t.Fatal("it wrote on the hub with nothing stored that could find it again")
		}
		if !step.Again {
			return
		}
	}
}

func addOnAsksOnce(t *testing.T, r *addOnRun) {
	t.Helper()
	if _, err := r.untilWaiting(t); err != nil {
		t.Fatal(err)
	}
	writes, stored := r.writes.Load(), maps.Clone(r.pending)
	if writes > 1 {
		t.Errorf("it wrote %d times on the hub, want once at most", writes)
	}
	for range maxSteps {
		r.pending = maps.Clone(stored)
		if _, err := r.step(t); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("%d restarts made %d writes on the hub", maxSteps, got)
	}
}

func addOnIssues(t *testing.T, r *addOnRun) {
	t.Helper()
	issued := r.grant(t)
	validity, err := r.driver().Inspect(issued.Data)
	if err != nil {
		t.Fatalf("it does not recognise what it brought: %v", err)
	}
	if validity != issued.Validity || validity.Lifetime() <= 0 {
		t.Errorf("it is good %+v, inspected %+v", issued.Validity, validity)
	}
	if writes, tokens := r.writes.Load(), r.tokens.Load(); writes+tokens > 1 {
		t.Errorf("it cost %d writes and %d TokenRequests, want one of them at most", writes, tokens)
	}
	checkUser(t, r.driver().User(), issued)
	for key := range issued.Data {
		if strings.Contains(key, "/") {
			t.Errorf("no Secret can have the key %s", key)
		}
	}
}

// addOnIssuesAgain: a process that stopped before it had stored what was issued
// loses nothing. Whether it is issued the same is the driver's affair.
func addOnIssuesAgain(t *testing.T, r *addOnRun) {
	t.Helper()
	if _, err := r.untilWaiting(t); err != nil {
		t.Fatal(err)
	}
	stored := maps.Clone(r.pending)
	r.suite.Grant(t, r.addOn)
	r.untilIssued(t)
	writes := r.writes.Load()
	r.pending = stored
	second := r.untilIssued(t)
	if _, err := r.driver().Inspect(second.Data); err != nil {
		t.Errorf("after a crash: %v", err)
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("after a crash it wrote %d times", got)
	}
}

func addOnRefused(t *testing.T, r *addOnRun) {
	t.Helper()
	if _, err := r.untilWaiting(t); err != nil {
		t.Fatal(err)
	}
	r.suite.Refuse(t, r.addOn)
	writes := r.writes.Load()
	for range maxSteps {
		step, err := r.untilWaiting(t)
		if step.Issued != nil || err == nil && !step.Failing {
			t.Fatalf("refused, it says %+v, %v", step, err)
		}
	}
	if got := r.writes.Load() - writes; got > 0 {
		t.Errorf("it wrote %d times after the denial", got)
	}
}
