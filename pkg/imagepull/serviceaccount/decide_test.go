package serviceaccount_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/serviceaccount"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestSelects(t *testing.T) {
	t.Parallel()
	object := func(annotation string, l map[string]string) *metav1.ObjectMeta {
		o := &metav1.ObjectMeta{Labels: l}
		if annotation != "" {
			o.Annotations = map[string]string{names.AnnotationPullSecret: annotation}
		}
		return o
	}
	shop, app := map[string]string{"team": "shop"}, map[string]string{"app": "web"}
	team, web := labels.SelectorFromSet(shop), labels.SelectorFromSet(app)
	for _, tc := range []struct {
		name               string
		selection          serviceaccount.Selection
		account, namespace *metav1.ObjectMeta
		selected           bool
	}{
		{name: "nothing is selected by default", account: object("", app), namespace: object("", shop)},
		{name: "selectors that select everything are none", selection: serviceaccount.Selection{Namespaces: labels.Everything(), ServiceAccounts: labels.Everything()}, account: object("", nil), namespace: object("", nil)},
		{name: "the ServiceAccount opts in", account: object("true", nil), namespace: object("", nil), selected: true},
		{name: "the namespace opts in", account: object("", nil), namespace: object("true", nil), selected: true},
		{name: "the ServiceAccount opts out of its namespace", account: object("false", nil), namespace: object("true", nil)},
		{name: "the ServiceAccount opts in against its namespace", account: object("true", nil), namespace: object("false", nil), selected: true},
		{name: "another value is none", account: object("yes please", nil), namespace: object("true", nil), selected: true},
		{name: "by namespace", selection: serviceaccount.Selection{Namespaces: team}, account: object("", nil), namespace: object("", shop), selected: true},
		{name: "by ServiceAccount", selection: serviceaccount.Selection{ServiceAccounts: web}, account: object("", app), namespace: object("", nil), selected: true},
		{name: "both must match", selection: serviceaccount.Selection{Namespaces: team, ServiceAccounts: web}, account: object("", app), namespace: object("", nil)},
		{name: "both match", selection: serviceaccount.Selection{Namespaces: team, ServiceAccounts: web}, account: object("", app), namespace: object("", shop), selected: true},
		{name: "all", selection: serviceaccount.Selection{All: true}, account: object("", nil), namespace: object("", nil), selected: true},
		{name: "out of all", selection: serviceaccount.Selection{All: true}, account: object("false", nil), namespace: object("", nil)},
		{name: "a selector narrows all", selection: serviceaccount.Selection{All: true, ServiceAccounts: web}, account: object("", nil), namespace: object("", nil)},
		{name: "out of a selected namespace", selection: serviceaccount.Selection{Namespaces: team}, account: object("false", nil), namespace: object("", shop)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.selection.Selects(tc.account, tc.namespace); got != tc.selected {
				t.Errorf("selected: %v", got)
			}
		})
	}
}

// TestContention: three removals within ten minutes end it; a stale cache, slow
// removals and another ServiceAccount of the name do not.
func TestContention(t *testing.T) {
	t.Parallel()
	account := func(uid, version string) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "app"}}
		a.UID, a.ResourceVersion = "u1", version
		if uid != "" {
			a.UID = metav1.ObjectMeta{UID: "u2"}.UID
		}
		return a
	}
	at := time.Unix(1000, 0)
	c := serviceaccount.NewContention()
	removal := func(a *corev1.ServiceAccount, written string) (attach, gaveUp bool) {
		c.Attached(a, written)
		return c.Missing(a, at)
	}
	if attach, gaveUp := c.Missing(account("", "1"), at); !attach || gaveUp {
		t.Error("the first entry is not written")
	}
	if attach, gaveUp := removal(account("", "4"), "5"); attach || gaveUp {
		t.Error("a cache that is behind our own write counts")
	}
	for range 5 { // One in six minutes is no contention.
		if attach, _ := removal(account("", "6"), "5"); !attach {
			t.Error("a slow removal stops it")
		}
		at = at.Add(6 * time.Minute)
	}
	at = at.Add(time.Hour)
	for i, wantAttach := range []bool{true, true, false} {
		if attach, gaveUp := removal(account("", "8"), "7"); attach != wantAttach || gaveUp == wantAttach {
			t.Errorf("removal %d: attach %v, gave up %v", i+1, attach, gaveUp)
		}
	}
	if attach, gaveUp := c.Missing(account("", "9"), at.Add(time.Hour)); attach || gaveUp || c.Stopped() != 1 {
		t.Error("it does not stay stopped")
	}
	if attach, _ := c.Missing(account("another", "9"), at); !attach {
		t.Error("a recreated ServiceAccount is stopped as well")
	}
	changed := account("", "10")
	changed.Secrets = []corev1.ObjectReference{{Name: "mounted"}}
	if attach, _ := c.Missing(changed, at); !attach || c.Stopped() != 0 {
		t.Error("a changed ServiceAccount is still stopped")
	}
	for range 3 {
		removal(account("", "12"), "11")
	}
	if c.Stopped() != 1 {
		t.Error("it is not stopped again")
	}
	c.Forget(account("", "12"))
	if attach, _ := c.Missing(account("", "12"), at); !attach || c.Stopped() != 0 {
		t.Error("it remembers what it forgot")
	}
}

func TestManager(t *testing.T) {
	t.Parallel()
	entry := func(manager, fields string, at int64) metav1.ManagedFieldsEntry {
		when := metav1.Unix(at, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const list = `{"f:imagePullSecrets":{}}`
	for want, fields := range map[string][]metav1.ManagedFieldsEntry{
		"":       nil,
		"gitops": {entry("old", list, 1), entry("gitops", list, 2), entry(string(serviceaccount.Owner), list, 3), entry("labels", `{"f:metadata":{}}`, 4)},
	} {
		if got := serviceaccount.Manager(fields); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
