package bootstrap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestTokens is one test on one control plane: the list of tokens is the hub's.
func TestTokens(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}},
		},
	} {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	tokens := bootstrap.Tokens{Client: admin, Clock: clock.RealClock{}}
	one, two := mint(t, tokens), mint(t, tokens)

	if one.ID == "" || one.ID == two.ID || one.User != names.BootstrapServiceAccountUser {
		t.Errorf("tokens %v and %v of %s", one, two, one.User)
	}
	if left := one.Expires.Sub(clock.RealClock{}.Now()); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("the token is good for %s, not for ten minutes", left)
	}
	if ids := list(t, tokens); !slices.Contains(ids, one.ID) || !slices.Contains(ids, two.ID) {
		t.Errorf("listed %v", ids)
	}
	var secrets corev1.SecretList
	if err := admin.List(t.Context(), &secrets, client.InNamespace(names.OperatorNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if len(s.Data) > 0 || strings.Contains(s.String(), one.Secret()) {
			t.Errorf("Secret %s holds something", s.Name)
		}
	}
	// The API server sees the binding a moment later than we made it.
	if !soon(t, func() bool { return try(t, cp, one) == nil }) {
		t.Fatalf("a new token is refused: %v", try(t, cp, one))
	}
	revoke(t, cp, tokens, one, two)
	pruned(t, admin, two)
}

func mint(t *testing.T, tokens bootstrap.Tokens) bootstrap.Token {
	t.Helper()
	token, err := tokens.Mint(t.Context(), bootstrap.MinTTL)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func list(t *testing.T, tokens bootstrap.Tokens) []string {
	t.Helper()
	infos, err := tokens.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	return ids
}

// try uses a token against the API server.
func try(t *testing.T, cp *controlplane.ControlPlane, token bootstrap.Token) error {
	t.Helper()
	c := cp.ClientFor(t, cp.ConfigForToken(token.Secret()))
	return c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
}

func revoke(t *testing.T, cp *controlplane.ControlPlane, tokens bootstrap.Tokens, one, two bootstrap.Token) {
	t.Helper()
	if _, err := tokens.Revoke(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Revoke(t.Context(), one.ID); !errors.Is(err, bootstrap.ErrNoToken) {
		t.Errorf("revoking twice: %v", err)
	}
	// The API server remembers a good answer for some seconds.
	if !soon(t, func() bool { return try(t, cp, one) != nil }) {
		t.Error("the revoked token is still good")
	}
	access := bootstrap.CheckAccess(t.Context(), cp.ClientFor(t, cp.ConfigForToken(one.Secret())), one, clock.RealClock{}.Now())
	if kindOf(access) != bootstrap.Refused {
		t.Errorf("a revoked token: %v", access)
	}
	if err := try(t, cp, two); err != nil {
		t.Errorf("the other token is refused: %v", err)
	}
	late := bootstrap.CheckAccess(t.Context(), cp.Client(t), two, two.Expires.Add(time.Second))
	if kindOf(late) != bootstrap.Expired {
		t.Errorf("an expired token: %v", late)
	}
	if err := bootstrap.CheckAccess(t.Context(), cp.Client(t), two, clock.RealClock{}.Now()); kindOf(err) != bootstrap.NotAHub {
		t.Errorf("a server that is no hub: %v", err)
	}
}

// soon reports whether something becomes true within a minute.
func soon(t *testing.T, ok func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return ok(), nil
	}) == nil
}

// pruned mints a token long after another has expired.
func pruned(t *testing.T, admin client.Client, expired bootstrap.Token) {
	t.Helper()
	later := bootstrap.Tokens{Client: admin, Clock: clocktesting.NewFakePassiveClock(expired.Expires.Add(time.Hour))}
	infos, err := later.List(t.Context())
	if err != nil || len(infos) != 1 || !infos[0].Expired {
		t.Fatalf("an hour later: %v, %v", infos, err)
	}
	mint(t, later)
	if ids := list(t, later); slices.Contains(ids, expired.ID) || len(ids) != 1 {
		t.Errorf("after minting: %v", ids)
	}
}
