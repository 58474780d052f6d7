package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/blindfold"
)

// request makes the first request of an agent, as the administrator; any
// requester but an agent would do.
func (e *env) request(t *testing.T, cluster, agent string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r := newRegistration(t, cluster)
	r.request.Subject.CommonName = names.AgentUser(cluster, agent)
	return r.submit(t, e.admin)
}

// agentNamed is an agent of a cluster with a credential of its own.
func (e *env) agentNamed(t *testing.T, cluster, agent string) client.Client {
	t.Helper()
	return e.cp.ClientFor(t, e.cp.ConfigFor(t, names.AgentUser(cluster, agent), names.ClusterGroup(cluster), names.GroupManagedClusters))
}

// awaitAgent waits until an agent, and nobody else, has the rights of a cluster.
func (e *env) awaitAgent(t *testing.T, cluster, agent string) {
	t.Helper()
	e.awaitHolder(t, cluster, names.AgentUser(cluster, agent))
}

func (e *env) subjects(ctx context.Context, key client.ObjectKey) ([]string, error) {
	var found []rbacv1.Subject
	var err error
	if key.Namespace == "" {
		var binding rbacv1.ClusterRoleBinding
		err = e.admin.Get(ctx, key, &binding)
		found = binding.Subjects
	} else {
		var binding rbacv1.RoleBinding
		err = e.admin.Get(ctx, key, &binding)
		found = binding.Subjects
	}
	var subjects []string
	for _, s := range found {
		subjects = append(subjects, s.Name)
	}
	return subjects, err
}

// checkWorthless checks that an agent can neither read nor write nor renew.
func (e *env) checkWorthless(t *testing.T, cluster, agent string) {
	t.Helper()
	ctx, old := t.Context(), e.agentNamed(t, cluster, agent)
	renewal := newRegistration(t, cluster)
	renewal.request.Subject.CommonName = names.AgentUser(cluster, agent)
	for what, do := range map[string]func(context.Context) error{
		"read the cluster": func(ctx context.Context) error {
			return old.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
		},
		"write the status": func(ctx context.Context) error {
			return old.Status().Patch(ctx, e.named(cluster), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"version":{"kubernetes":"v1"}}}`)))
		},
		"renew": func(ctx context.Context) error { return old.Create(ctx, renewal.object.DeepCopy()) },
	} {
		// The authorizer hears of a changed binding a moment later.
		eventually(t, agent+" may not "+what, func(ctx context.Context) (bool, error) {
			return apierrors.IsForbidden(do(ctx)), nil
		})
	}
	// Whatever else lets it create requests: the hub does not approve them.
	e.allow(t, "renews-"+cluster+"-"+agent, names.AgentUser(cluster, agent), rbacv1.PolicyRule{
		APIGroups: []string{names.RegisterGroup}, Resources: []string{names.ResourceClientCertificates}, Verbs: []string{"renew"},
	}, csrCreation())
	asked := renewal.submit(t, old)
	e.bare(t, cluster+"-marker", acceptedFromTheStart)
	e.approve(t, e.request(t, cluster+"-marker", "a1"))
	e.awaitAgent(t, cluster+"-marker", "a1")
	e.awaitApproved(t, newRegistration(t, cluster+"-marker").submit(t, e.agent(t, cluster+"-marker")))
	e.checkUndecided(t, "the renewal of "+agent, asked)
	if got := e.get(ctx, t, cluster); got.Status.Version.Kubernetes != "" {
		t.Errorf("%s wrote the status", agent)
	}
}

// TestReusedName: a credential of an earlier agent of a name is worthless as
// soon as another agent has the name.
func TestReusedName(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	join := func(t *testing.T, name, agent string) {
		t.Helper()
		e.approve(t, e.request(t, name, agent))
		e.accept(t, name)
		e.awaitAccepted(t, name)
		e.awaitAgent(t, name, agent)
	}
	t.Run("by a cluster that joins after one that was deleted", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "deleted")
		join(t, "deleted", "old")
		e.delete(t, "deleted")
		e.awaitGone(t, e.named("deleted"))
		e.bare(t, "deleted", acceptedFromTheStart)
		e.awaitAccepted(t, "deleted")
		if got := e.has(t.Context(), t, "deleted"); slices.Contains(got, "cluster role binding") {
			t.Error("somebody has rights before a request was approved")
		}
		join(t, "deleted", "new")
		e.checkWorthless(t, "deleted", "old")
	})
	t.Run("by a cluster that joins after one that left", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "left")
		join(t, "left", "old")
		e.patch(t, "left", `{"metadata":{"annotations":{"`+names.AnnotationLeft+`":"true"}},"spec":{"hubAcceptsClient":false}}`)
		e.awaitCondition(t, "left", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
		e.patch(t, "left", `{"metadata":{"annotations":{"`+names.AnnotationLeft+`":null}},"spec":{"hubAcceptsClient":true}}`)
		e.awaitAccepted(t, "left")
		if got := e.has(t.Context(), t, "left"); slices.Contains(got, "cluster role binding") {
			t.Error("somebody has rights before a request was approved")
		}
		join(t, "left", "new")
		e.checkWorthless(t, "left", "old")
	})
	// What happens to the cluster meanwhile must not cost the next agent its approval.
	t.Run("by one that left, whose next agent is approved before the cluster is accepted", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "early")
		join(t, "early", "old")
		e.patch(t, "early", `{"metadata":{"annotations":{"`+names.AnnotationLeft+`":"true"}},"spec":{"hubAcceptsClient":false}}`)
		e.awaitCondition(t, "early", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
		e.approve(t, e.request(t, "early", "new"))
		for range 2 { // Each has the hub look at the cluster, which still says that it left.
			e.approve(t, e.request(t, "early", "newest"))
		}
		e.accept(t, "early")
		e.awaitAccepted(t, "early")
		e.awaitAgent(t, "early", "newest")
		e.checkWorthless(t, "early", "old")
	})
	t.Run("by an agent that was installed again", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "again")
		join(t, "again", "old")
		e.approve(t, e.request(t, "again", "new"))
		e.awaitAgent(t, "again", "new")
		e.checkWorthless(t, "again", "old")
	})
	t.Run("by an agent that comes after a denial", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "denied")
		join(t, "denied", "old")
		e.deny(t, "denied")
		join(t, "denied", "new")
		e.checkWorthless(t, "denied", "old")
	})
}

// TestRecord is what becomes of the record of a cluster's agent.
func TestRecord(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, defaults(), writes.Wrap)

	t.Run("accepted before its request it takes eight writes as well", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "early", acceptedFromTheStart)
		e.awaitAccepted(t, "early")
		e.approve(t, e.request(t, "early", "a1"))
		e.awaitAgent(t, "early", "a1")
		// Four of them are applied once more where the cache shows them too late.
		if own := writes.About("early"); len(own) > 8+4 {
			t.Errorf("%d writes:\n%s", len(own), strings.Join(own, "\n"))
		}
	})
	t.Run("a request that an agent made introduces nobody", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "tricked", acceptedFromTheStart)
		e.awaitAgent(t, "tricked", "a1")
		other := newRegistration(t, "tricked")
		other.request.Subject.CommonName = names.AgentUser("tricked", "a2")
		e.approve(t, other.submit(t, e.agent(t, "tricked")))
		e.approve(t, newRegistration(t, "tricked").submit(t, e.agent(t, "tricked")))
		e.cluster(t, "tricked-marker", acceptedFromTheStart)
		e.awaitAgent(t, "tricked-marker", "a1")
		e.awaitAgent(t, "tricked", "a1")
	})
	t.Run("it survives the loss of bindings and of the request", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "lost", acceptedFromTheStart)
		request := e.request(t, "lost", "a1")
		e.approve(t, request)
		e.awaitAgent(t, "lost", "a1")
		for _, object := range []client.Object{request, placeOf("lost")["cluster role binding"], placeOf("lost")["registration binding"]} {
			if err := e.admin.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		e.awaitAgent(t, "lost", "a1")
	})
}

// TestGroupBindings: the bindings of the group that OCM makes stay until the
// next approval, of a renewal too, names the agent.
func TestGroupBindings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, defaults(), nil)
	for _, name := range []string{"c1", "c2"} {
		e.cluster(t, name, acceptedFromTheStart)
		e.awaitAgent(t, name, "a1")
	}
	stop()
	for _, name := range []string{"c1", "c2"} {
		e.forget(t, name)
		e.bindGroup(t, name)
	}
	e.start(t, defaults(), nil)
	group := func(name string) {
		t.Helper()
		eventually(t, name+" is bound by its group alone", func(ctx context.Context) (bool, error) {
			subjects, err := e.subjects(ctx, client.ObjectKey{Name: names.ManagedClusterClusterRole(name)})
			return slices.Equal(subjects, []string{names.ClusterGroup(name)}), err
		})
	}
	group("c1")
	group("c2")
	e.deny(t, "c1")
	group("c1")
	e.accept(t, "c1")
	e.awaitAccepted(t, "c1")
	e.awaitApproved(t, newRegistration(t, "c1").submit(t, e.agent(t, "c1")))
	e.awaitAgent(t, "c1", "a1")
	e.checkWorthless(t, "c1", "a0")
	e.approve(t, e.request(t, "c2", "a2"))
	e.awaitAgent(t, "c2", "a2")
	e.checkWorthless(t, "c2", "a1")
}

// TestApprovedLongBefore: a request may be approved long before its cluster is
// accepted, and be gone by then. Its agent has its rights nevertheless.
func TestApprovedLongBefore(t *testing.T) {
	t.Parallel()
	unseen := blindfold.New(func(watch *http.Request) bool { return strings.HasSuffix(watch.URL.Path, "/clusterrolebindings") })
	for _, tc := range []struct {
		name string
		wrap func(http.RoundTripper) http.RoundTripper
	}{
		{name: "what was recorded of it is in the cache"},
		{name: "the cache does not show yet what was recorded of it", wrap: unseen.Wrap},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			cfg := defaults()
			cfg.Clock = clocktesting.NewFakePassiveClock(clock.RealClock{}.Now().Add(6 * time.Minute))
			e.start(t, cfg, tc.wrap)
			e.bare(t, "c1")
			request := e.request(t, "c1", "a1")
			e.approve(t, request)
			e.awaitPlace(t, "c1", "cluster role", "cluster role binding")
			if err := e.admin.Delete(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			e.accept(t, "c1")
			e.awaitAgent(t, "c1", "a1")
		})
	}
}

// TestRecordWithoutCluster: what was recorded for a cluster that is deleted before it
// was ever accepted goes with it.
func TestRecordWithoutCluster(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	cfg := defaults()
	cfg.Clock = clocktesting.NewFakePassiveClock(clock.RealClock{}.Now().Add(6 * time.Minute))
	e.start(t, cfg, nil)
	e.bare(t, "c2")
	e.approve(t, e.request(t, "c2", "a1"))
	e.awaitPlace(t, "c2", "cluster role", "cluster role binding")
	e.delete(t, "c2")
	e.awaitPlace(t, "c2")
}

// TestRecordSeenTooLate: the record of a cluster that is gone goes as well when the
// hub's cache shows it only then.
func TestRecordSeenTooLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	blind := blindfold.New(func(watch *http.Request) bool { return strings.Contains(watch.URL.Path, "/clusterrole") })
	cfg := defaults()
	cfg.Clock = clocktesting.NewFakePassiveClock(clock.RealClock{}.Now().Add(6 * time.Minute))
	e.start(t, cfg, blind.Wrap)
	e.bare(t, "c1")
	e.approve(t, e.request(t, "c1", "a1"))
	e.awaitPlace(t, "c1", "cluster role", "cluster role binding")
	e.delete(t, "c1")
	e.awaitGone(t, e.named("c1"))
	e.bare(t, "marker", acceptedFromTheStart)
	e.awaitAccepted(t, "marker")
	blind.Lift()
	e.awaitPlace(t, "c1")
}

// TestReusedNameSeenTooLate: what the cache still shows of a cluster that is gone
// gives the next one of its name no agent.
func TestReusedNameSeenTooLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, defaults(), nil)
	e.bare(t, "c1")
	e.approve(t, e.request(t, "c1", "old"))
	e.accept(t, "c1")
	e.awaitAgent(t, "c1", "old")
	stop()

	blind := blindfold.New(func(watch *http.Request) bool { return strings.HasSuffix(watch.URL.Path, "/rolebindings") })
	e.start(t, defaults(), blind.Wrap)
	e.delete(t, "c1")
	e.awaitGone(t, e.named("c1"))
	nobody := func() {
		t.Helper()
		if got := e.has(t.Context(), t, "c1"); slices.Contains(got, "cluster role binding") {
			t.Error("somebody has rights before a request was approved")
		}
	}
	e.bare(t, "c1", acceptedFromTheStart)
	e.awaitAccepted(t, "c1")
	nobody()
	blind.Lift()
	e.bare(t, "marker", acceptedFromTheStart)
	e.approve(t, e.request(t, "marker", "a1"))
	e.awaitAgent(t, "marker", "a1")
	nobody()
	e.approve(t, e.request(t, "c1", "new"))
	e.awaitAgent(t, "c1", "new")
	e.checkWorthless(t, "c1", "old")
}

// TestApprovalGoneBeforeAcceptance: an approved request that is deleted before its cluster
// is accepted for the first time introduces nobody, though the cache still shows it, and the
// next one does once the cache shows that.
func TestApprovalGoneBeforeAcceptance(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.bare(t, "c1")
	request := e.request(t, "c1", "old")
	e.approve(t, request)
	blind := blindfold.New(func(watch *http.Request) bool {
		return strings.HasSuffix(watch.URL.Path, "/certificatesigningrequests")
	})
	e.start(t, defaults(), blind.Wrap)
	e.bare(t, "marker", acceptedFromTheStart)
	e.awaitAccepted(t, "marker")
	if err := e.admin.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	e.accept(t, "c1")
	e.awaitAccepted(t, "c1")
	if got := e.has(t.Context(), t, "c1"); slices.Contains(got, "cluster role binding") {
		t.Error("the agent of a deleted request has rights")
	}
	e.approve(t, e.request(t, "c1", "new"))
	blind.Lift()
	e.awaitAgent(t, "c1", "new")
	e.checkWorthless(t, "c1", "old")
}

// TestApprovalsAreOrderedByOneClock: the agent that was approved last has the
// rights although the controller, whose clock is ahead, approved the one before.
func TestApprovalsAreOrderedByOneClock(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	cfg := approving(defaults(), "listed")
	cfg.Clock = clocktesting.NewFakePassiveClock(clock.RealClock{}.Now().Add(6 * time.Minute))
	e.start(t, cfg, nil)
	e.allow(t, "listed", "listed", csrCreation())
	e.bare(t, "c1")
	e.awaitApproved(t, newRegistration(t, "c1").submit(t, e.cp.ClientFor(t, e.cp.ConfigFor(t, "listed"))))
	e.awaitAgent(t, "c1", "a1")
	e.approve(t, e.request(t, "c1", "a2"))
	e.awaitAgent(t, "c1", "a2")
}

// forget deletes the requests of a cluster, as Kubernetes does after an hour.
func (e *env) forget(t *testing.T, cluster string) {
	t.Helper()
	err := e.admin.DeleteAllOf(t.Context(), &certificatesv1.CertificateSigningRequest{}, client.MatchingLabels{names.LabelClusterName: cluster})
	if err != nil {
		t.Fatal(err)
	}
}

// bindGroup makes the bindings of a cluster those that OCM makes.
func (e *env) bindGroup(t *testing.T, cluster string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
		`{"metadata":{"annotations":null},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":%q},{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`,
		names.ClusterGroup(cluster), names.MappedClusterGroup(cluster)))
	for what, object := range placeOf(cluster) {
		if !strings.HasSuffix(what, "binding") {
			continue
		}
		if err := e.admin.Patch(t.Context(), object, patch); err != nil {
			t.Fatal(err)
		}
	}
}
