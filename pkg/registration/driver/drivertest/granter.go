package drivertest

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// maxRequests is far more than a driver needs for one grant.
const maxRequests = 200

// GranterSuite is a driver that grants, with an outside service to test it at.
// Every subtest takes a service of its own.
type GranterSuite struct {
	// Driver returns a driver as a new process would make it.
	Driver func() driver.Granter
	// Register are the annotations with which a cluster registers with this driver
	// as something that id stands for.
	Register func(id string) map[string]string
	// Annotations are the annotations that the driver's Identifier reads.
	Annotations []string
	// Spoiled are annotations that cannot be used, each for another reason.
	Spoiled []map[string]string
	// Fail has the service fail after the next requests; negative lets all through
	// again. If lost, the first request that fails is obeyed nevertheless.
	Fail func(after int, lost bool)
	// Requests returns how many requests the service has had, and how many of them
	// changed something.
	Requests func() (all, writes int)
	// Drift are the ways in which a user can change a grant.
	Drift map[string]func(t *testing.T, grant driver.Grant)
	// Missing lists what of a grant does not exist or is not as it should be, and
	// Left what of it exists.
	Missing func(t *testing.T, grant driver.Grant) []string
	Left    func(t *testing.T, grant driver.Grant) []string
}

// RunGranter runs the suite with what newSuite returns for each subtest.
func RunGranter(t *testing.T, newSuite func(*testing.T) GranterSuite) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, GranterSuite){
		"a plan follows from annotations alone":               plansPurely,
		"no two clusters share an identity":                   plansApart,
		"annotations that cannot be used are an error":        refusesSpoiled,
		"granting twice is granting once":                     grantsOnce,
		"a changed grant is repaired":                         repairs,
		"granting continues after a failure at any request":   grantsThroughFailures,
		"revoking removes what a failed grant left":           revokesPartial,
		"revoking continues after a failure at any request":   revokesThroughFailures,
		"revoking what was never granted is no error":         revokesNothing,
		"revoking one cluster's grant leaves another's as is": revokesItsOwn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, newSuite(t))
		})
	}
}

// registered is a ManagedCluster that registers with the driver.
func (s GranterSuite) registered(name, id string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: s.Register(id)}}
}

// plan returns a plan as the hub keeps it: nothing that does not survive being
// written down counts.
func (s GranterSuite) plan(t *testing.T, name, id string) driver.Grant {
	t.Helper()
	plan, err := s.Driver().Plan(s.registered(name, id))
	if err != nil || plan == nil {
		t.Fatalf("plan of %s: %v, %v", name, plan, err)
	}
	text, err := yaml.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var recorded driver.Grant
	if err := yaml.UnmarshalStrict(text, &recorded); err != nil {
		t.Fatal(err)
	}
	return recorded
}

// grant grants until nothing is waited for, by a process of its own.
func (s GranterSuite) grant(t *testing.T, plan driver.Grant) {
	t.Helper()
	d := s.Driver()
	for range int(patience / pace) {
		progress, err := d.Grant(t.Context(), plan)
		if err != nil {
			t.Fatalf("grant: %v", err)
		}
		if progress.Waiting == "" {
			s.checkComplete(t, plan)
			return
		}
		if progress.After <= 0 {
			t.Fatalf("it waits without saying for how long: %s", progress.Waiting)
		}
		clock.RealClock{}.Sleep(pace)
	}
	t.Fatal("it never stops waiting")
}

func (s GranterSuite) checkComplete(t *testing.T, plan driver.Grant) {
	t.Helper()
	if missing := s.Missing(t, plan); len(missing) > 0 {
		t.Fatalf("of the grant to %s is missing: %s", plan.Cluster, strings.Join(missing, ", "))
	}
}

func (s GranterSuite) revoke(t *testing.T, plan driver.Grant) {
	t.Helper()
	if err := s.Driver().Revoke(t.Context(), plan); err != nil {
		t.Fatalf("revoke: %v", err)
	}
	if left := s.Left(t, plan); len(left) > 0 {
		t.Fatalf("of the grant to %s is left: %s", plan.Cluster, strings.Join(left, ", "))
	}
}

// checkSentence checks that a user can be shown an error.
func checkSentence(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	first, _ := utf8.DecodeRuneInString(text)
	if !strings.Contains(text, " ") || strings.ContainsAny(text, "\n\t") || unicode.IsUpper(first) || strings.HasSuffix(text, ".") || len(text) > 1000 {
		t.Errorf("not a sentence as errors have it: %q", text)
	}
}

func plansPurely(t *testing.T, s GranterSuite) {
	t.Helper()
	before, _ := s.Requests()
	cluster := s.registered("c1", "one")
	untouched := cluster.DeepCopy()
	first, err := s.Driver().Plan(cluster)
	if err != nil || first == nil {
		t.Fatalf("%v, %v", first, err)
	}
	if diff := cmp.Diff(untouched, cluster); diff != "" {
		t.Errorf("it changed the cluster:\n%s", diff)
	}
	cluster.Labels = map[string]string{"a": "b"}
	cluster.Annotations["other"] = "x"
	cluster.Spec.HubAcceptsClient = true
	cluster.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://x"}}
	cluster.Finalizers = []string{"a/b"}
	second, err := s.Driver().Plan(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the plan depends on something else than its annotations:\n%s", diff)
	}
	for key := range s.Register("one") {
		if !slices.Contains(s.Annotations, key) {
			t.Errorf("it goes by the annotation %s, which admission does not freeze", key)
		}
	}
	if plan, err := s.Driver().Plan(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}}); plan != nil || err != nil {
		t.Errorf("of a cluster that does not register with it: %v, %v", plan, err)
	}
	if after, _ := s.Requests(); after != before {
		t.Errorf("planning sent %d requests", after-before)
	}
}

func plansApart(t *testing.T, s GranterSuite) {
	t.Helper()
	one, two, twin := s.plan(t, "c1", "one"), s.plan(t, "c2", "two"), s.plan(t, "c3", "one")
	if one.Key == "" || one.Key == two.Key {
		t.Errorf("the keys of two clusters: %q, %q", one.Key, two.Key)
	}
	if one.Key != twin.Key {
		t.Errorf("one identifier has two keys: %q, %q", one.Key, twin.Key)
	}
	if one.Cluster != "c1" || len(one.Subjects) == 0 {
		t.Errorf("got %+v", one)
	}
	for _, other := range []driver.Grant{two, twin} {
		if slices.ContainsFunc(one.Subjects, func(s rbacv1.Subject) bool { return slices.Contains(other.Subjects, s) }) {
			t.Errorf("clusters %s and %s have a subject in common: %v", one.Cluster, other.Cluster, one.Subjects)
		}
	}
	for _, subject := range one.Subjects {
		if subject.Name == names.ClusterGroup("c1") || subject.Name == names.GroupManagedClusters {
			t.Errorf("the subject is the group of agents with certificates: %v", subject)
		}
	}
}

func refusesSpoiled(t *testing.T, s GranterSuite) {
	t.Helper()
	for _, annotations := range s.Spoiled {
		plan, err := s.Driver().Plan(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: annotations}})
		if plan != nil || err == nil {
			t.Errorf("%v: %v, %v", annotations, plan, err)
			continue
		}
		checkSentence(t, err)
	}
}

func grantsOnce(t *testing.T, s GranterSuite) {
	t.Helper()
	plan := s.plan(t, "c1", "one")
	s.grant(t, plan)
	_, before := s.Requests()
	s.grant(t, plan)
	if _, after := s.Requests(); after != before {
		t.Errorf("granting again made %d writes", after-before)
	}
	s.revoke(t, plan)
	s.revoke(t, plan)
}

func repairs(t *testing.T, s GranterSuite) {
	t.Helper()
	plan := s.plan(t, "c1", "one")
	s.grant(t, plan)
	for name, drift := range s.Drift {
		drift(t, plan)
		if len(s.Missing(t, plan)) == 0 {
			t.Fatalf("%s: nothing changed", name)
		}
		s.grant(t, plan)
	}
}

// failing does something with a service that fails after n requests, and reports
// whether it came to an end nevertheless. Any failure is a sentence, and always
// the same.
func (s GranterSuite) failing(t *testing.T, n int, lost bool, do func() error) (done bool) {
	t.Helper()
	s.Fail(n, lost)
	defer s.Fail(-1, false)
	err := do()
	if err == nil {
		return true
	}
	checkSentence(t, err)
	s.Fail(0, false)
	first, second := do(), do()
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("one failure in two words: %v, %v", first, second)
	}
	return false
}

// everyFailure runs check for a failure at each request, obeyed or not, that do
// makes.
func (s GranterSuite) everyFailure(t *testing.T, prepare, do func() error, check func()) {
	t.Helper()
	for _, lost := range []bool{false, true} {
		for n := 0; ; n++ {
			if n > maxRequests {
				t.Fatalf("%d requests and no end", n)
			}
			if err := prepare(); err != nil {
				t.Fatal(err)
			}
			done := s.failing(t, n, lost, do)
			check()
			if done {
				break
			}
		}
	}
}

func grantsThroughFailures(t *testing.T, s GranterSuite) {
	t.Helper()
	plan := s.plan(t, "c1", "one")
	s.everyFailure(t,
		func() error { return s.Driver().Revoke(t.Context(), plan) },
		func() error {
			_, err := s.Driver().Grant(t.Context(), plan)
			return err
		},
		func() { s.grant(t, plan) })
}

func revokesPartial(t *testing.T, s GranterSuite) {
	t.Helper()
	plan := s.plan(t, "c1", "one")
	s.everyFailure(t,
		func() error { return nil },
		func() error {
			_, err := s.Driver().Grant(t.Context(), plan)
			return err
		},
		func() { s.revoke(t, plan) })
}

func revokesThroughFailures(t *testing.T, s GranterSuite) {
	t.Helper()
	plan := s.plan(t, "c1", "one")
	s.everyFailure(t,
		func() error {
			s.grant(t, plan)
			return nil
		},
		func() error { return s.Driver().Revoke(t.Context(), plan) },
		func() { s.revoke(t, plan) })
}

func revokesNothing(t *testing.T, s GranterSuite) {
	t.Helper()
	_, before := s.Requests()
	s.revoke(t, s.plan(t, "c1", "one"))
	if _, after := s.Requests(); after != before {
		t.Errorf("it made %d writes", after-before)
	}
}

func revokesItsOwn(t *testing.T, s GranterSuite) {
	t.Helper()
	one, two := s.plan(t, "c1", "one"), s.plan(t, "c2", "two")
	s.grant(t, one)
	s.grant(t, two)
	s.revoke(t, one)
	s.checkComplete(t, two)
}
