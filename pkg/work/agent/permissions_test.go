package agent_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// testForbidden has an agent that join gave no permissions, until an administrator of the
// cluster grants some: those for the objects, and none to watch them.
func testForbidden(t *testing.T, p *place) {
	t.Helper()
	objs, err := manifests.RenderKlusterletWork(manifests.Klusterlet{
		Name: p.cluster, Namespace: names.AgentNamespace, Work: &manifests.WorkAgent{Permissions: names.WorkPermissionsNone},
	})
	installation.Some(t, p.managed, objs, err, "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	account := names.WorkAgentServiceAccount(p.cluster)
	p.connection = rest.CopyConfig(p.connection)
	p.connection.Impersonate.UserName = names.ServiceAccountUser(names.AgentNamespace, account)
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	p.start(t)
	work := p.create(t, "app", oneMap)
	c := p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	if !strings.Contains(c.Message, account) || !strings.Contains(c.Message, "forbidden") {
		t.Error(c.Message)
	}
	p.reaches(t, work, "Applied=False", "Available=Unknown")
	// It is tried again, and that is no news.
	tried := func() int { return len(requests.about("GET /api/v1/namespaces/" + p.cluster + "/configmaps/one")) }
	await.Condition(t, patience, "further attempts", func(context.Context) (bool, error) { return tried() >= 6, nil })
	version := work.ResourceVersion
	p.reaches(t, work, "Applied=False")
	if work.ResourceVersion != version {
		t.Errorf("attempts that change nothing were reported: %s", show(work))
	}
	if n := p.countEvents(t, work, "ApplyFailed"); n > 1 {
		t.Errorf("%d events about one failure", n)
	}
	p.event(t, work, "ApplyFailed", "1 of 1 manifests cannot be applied; manifest 0: ")
	installation.Create(t, p.managed,
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "late"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "late"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "late"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: names.AgentNamespace, Name: account}},
		})
	p.reaches(t, work, "Applied=True", "Available=True")
	p.event(t, work, "Applied", "applied all 1 manifests")
	if n := p.countEvents(t, work, "ApplyFailed"); n != 1 {
		t.Errorf("%d events about one failure", n)
	}
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.gone(t, work)
	p.finds(t, "one", missing)
}

// countEvents returns how often an event about a work was recorded.
func (p *place) countEvents(t *testing.T, work *workv1.ManifestWork, reason string) int {
	t.Helper()
	var all eventsv1.EventList
	if err := p.hub.List(t.Context(), &all, client.InNamespace(p.cluster)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all.Items {
		if e.Regarding.UID != work.UID || e.Reason != reason {
			continue
		}
		n++
		if e.Series != nil {
			n += int(e.Series.Count)
		}
	}
	return n
}

// testReviews counts what an executor costs: reviews before each write, and none for what
// is as it was left, also when another manifest of the work changes.
func testReviews(t *testing.T, p *place) {
	t.Helper()
	p.allow(t, "maps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}})
	requests := &counter{}
	p.connection.Wrap(requests.wrap)
	p.start(t)
	const reviews = "subjectaccessreviews"
	wanted := func(n int, what string) {
		t.Helper()
		if got := requests.about(reviews); len(got) != n {
			t.Errorf("%s: %d reviews, not %d", what, len(got), n)
		}
	}
	work := p.create(t, "app", twoMaps, p.execute)
	p.reaches(t, work, "Applied=True", "Available=True")
	wanted(10, "five verbs for each of two new objects")
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, strings.Replace(twoMaps, "data: {key: value}", "data: {key: changed}", 1))
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	wanted(15, "one of two manifests changed")
	p.change(t, work, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"look": "now"} })
	p.edit(t, "two", `{"data":{"key":"other"}}`)
	p.finds(t, "two", func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "value" })
	wanted(20, "one object repaired")
	all := len(requests.about(""))
	p.create(t, "other", strings.ReplaceAll(oneMap, "name: one", "name: third"))
	p.finds(t, "third", exists)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "changed" })
	for _, request := range requests.about("")[all:] {
		if strings.Contains(request, reviews) || strings.HasSuffix(request, "/one") || strings.HasSuffix(request, "/two") {
			t.Errorf("a request about what did not change: %s", request)
		}
	}
}
