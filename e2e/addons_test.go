package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestAddOnRegistration registers one add-on on two clusters at the same time:
// cluster1 gives its add-ons certificates, cluster2 tokens. The add-on is the
// same program on both.
func TestAddOnRegistration(t *testing.T) {
	t.Parallel()
	a := installSample(t, "e2e-both")
	for _, cluster := range []string{"cluster1", "cluster2"} {
		a.add(t, cluster)
	}
	for _, cluster := range []string{"cluster1", "cluster2"} {
		a.awaitAgent(t, cluster)
	}
	csr := a.awaitBeat(t, "cluster1", "certificate", beat{})
	token := a.awaitBeat(t, "cluster2", "token", beat{})
	if want := names.AddOnUser("cluster1", a.name, a.name); csr.user != want {
		t.Errorf("with driver csr the add-on is %s, want %s", csr.user, want)
	}
	account := names.AddOnServiceAccount("cluster2", a.name)
	if want := names.ServiceAccountUser("cluster2", account); token.user != want {
		t.Errorf("with driver token the add-on is %s, want %s", token.user, want)
	}
	for cluster, want := range map[string]struct {
		registration addonv1beta1.KubeClientConfig
		keys         []string
	}{
		"cluster1": {
			registration: registration("csr", csr.user, names.AddOnClusterGroup("cluster1", a.name), names.AddOnGroup(a.name)),
			keys:         []string{names.KeyTLSCert, names.KeyTLSKey},
		},
		"cluster2": {
			registration: registration("token", token.user),
			keys:         []string{names.KeyToken},
		},
	} {
		got, err := a.kubeClient(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want.registration, got); diff != "" {
			t.Errorf("registration on %s (-want +got):\n%s", cluster, diff)
		}
		secret, err := a.secret(t.Context(), fleet.client(t, cluster))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range append(want.keys, names.KeyKubeconfig, names.KeyClusterName) {
			if len(secret.Data[key]) == 0 {
				t.Errorf("no %s in the Secret on %s, only %v", key, cluster, slices.Sorted(maps.Keys(secret.Data)))
			}
		}
		a.awaitCondition(t, cluster, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	}
	t.Run("status", func(t *testing.T) {
		for _, args := range [][]string{{"get", "addons"}, {"addon-auth", "status", "--addon", a.name}} {
			out := fleet.must(t, append(args, "--context", "hub")...)
			for _, want := range []string{"cluster1", "cluster2", a.name, "csr", "token"} {
				if !strings.Contains(out, want) {
					t.Errorf("%v does not show %s:\n%s", args, want, out)
				}
			}
		}
	})
	t.Run("removal", func(t *testing.T) { a.removal(t, account) })
}

func registration(driver, user string, groups ...string) addonv1beta1.KubeClientConfig {
	return addonv1beta1.KubeClientConfig{
		Driver:  driver,
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}},
	}
}

// removal takes the add-on away from both clusters: nothing of it is left, and
// its token is no longer good.
func (a *addOn) removal(t *testing.T, account string) {
	config := a.config(t, "cluster2")
	for _, cluster := range []string{"cluster1", "cluster2"} {
		obj := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: a.name}}
		if err := a.hub.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		wantNothing(t, a.hub, "the add-on leaves "+cluster, obj)
		wantNothing(t, fleet.client(t, cluster), "the credential goes from "+cluster,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: addOnNamespace, Name: names.AddOnHubKubeconfigSecret(a.name)}})
	}
	wantNothing(t, a.hub, "the token infrastructure goes", a.infrastructure("cluster2", account)...)
	awaitRefused(t, config.BearerToken)
}

// infrastructure is what the hub makes for an add-on with driver token.
func (a *addOn) infrastructure(cluster, account string) []client.Object {
	role := metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnTokenRole(a.name)}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: account}},
		&rbacv1.Role{ObjectMeta: role},
		&rbacv1.RoleBinding{ObjectMeta: role},
	}
}

// awaitRefused waits until the hub no longer accepts a token; it remembers good
// ones for seconds.
func awaitRefused(t *testing.T, token string) {
	t.Helper()
	config := fleet.config(t, "hub")
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	c := newClient(t, config)
	eventually(t, "the hub refuses the token", func(ctx context.Context) error {
		err := c.Create(ctx, &authenticationv1.SelfSubjectReview{})
		if err == nil {
			return errors.New("it is still good")
		}
		if !apierrors.IsUnauthorized(err) {
			return err
		}
		return nil
	})
}

// TestAddOnTokenLife follows a token from its creation through everything that
// makes it be replaced.
func TestAddOnTokenLife(t *testing.T) {
	t.Parallel()
	a := installSample(t, "e2e-life")
	a.add(t, "cluster2")
	a.awaitAgent(t, "cluster2")
	a.awaitBeat(t, "cluster2", "token", beat{})
	managed := fleet.client(t, "cluster2")
	first := a.awaitToken(t, "cluster2", "")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster2", Name: names.AddOnServiceAccount("cluster2", a.name),
	}}
	if err := a.hub.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}

	t.Run("creation", func(t *testing.T) {
		if life := first.Expires - first.Issued; life != tokenLifetime {
			t.Errorf("the token is good for %d s, want the %d s of the Klusterlet", life, tokenLifetime)
		}
		if want := names.ServiceAccountUser("cluster2", account.Name); first.Subject != want {
			t.Errorf("the token is of %s, want %s", first.Subject, want)
		}
		wantTokenConditions(t, a, first, account)
	})
	t.Run("rotation loses no heartbeat", func(t *testing.T) {
		before := a.awaitBeat(t, "cluster2", "token", beat{})
		fleet.must(t, "addon-auth", "rotate", "--context", "hub", "--cluster", "cluster2", "--addon", a.name)
		second := a.awaitToken(t, "cluster2", first.raw)
		wantTokenConditions(t, a, second, account)
		after, err := a.last(t.Context(), "cluster2")
		if err != nil {
			t.Fatal(err)
		}
		after.sequence += 10
		if after = a.awaitBeat(t, "cluster2", "token", after); after.refused != before.refused {
			t.Errorf("the hub refused %d heartbeats", after.refused-before.refused)
		}
	})
	t.Run("deleted Secret", func(t *testing.T) {
		old := a.awaitToken(t, "cluster2", "")
		secret, err := a.secret(t.Context(), managed)
		if err != nil {
			t.Fatal(err)
		}
		if err := managed.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		a.awaitToken(t, "cluster2", old.raw)
	})
	t.Run("damaged Secret", func(t *testing.T) {
		old := a.awaitToken(t, "cluster2", "")
		secret, err := a.secret(t.Context(), managed)
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[names.KeyToken] = []byte("not a token")
		if err := managed.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		a.awaitToken(t, "cluster2", old.raw)
	})
	t.Run("deleted ServiceAccount", func(t *testing.T) { a.anotherAccount(t, account) })
	t.Run("deleted Role", func(t *testing.T) {
		infrastructure := a.infrastructure("cluster2", account.Name)
		for _, obj := range infrastructure[1:] {
			if err := a.hub.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			eventually(t, fmt.Sprintf("%T is made again", obj), func(ctx context.Context) error {
				return a.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			})
		}
	})
	a.awaitBeat(t, "cluster2", "token", a.awaitBeat(t, "cluster2", "token", beat{}))
}

// anotherAccount deletes the ServiceAccount, which ends every token of it. The
// hub makes another one of the same name, and the agent follows.
func (a *addOn) anotherAccount(t *testing.T, account *corev1.ServiceAccount) {
	old := a.awaitToken(t, "cluster2", "")
	uid := account.UID
	if err := a.hub.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another ServiceAccount", func(ctx context.Context) error {
		account.ResourceVersion = ""
		if err := a.hub.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
			return err
		}
		if account.UID == uid {
			return errors.New("it is the old one")
		}
		return nil
	})
	token := old
	eventually(t, "a token of the new ServiceAccount", func(ctx context.Context) error {
		secret, err := a.secret(ctx, fleet.client(t, "cluster2"))
		if err != nil {
			return err
		}
		token, err = parseToken(secret.Data[names.KeyToken])
		if err == nil && token.Kubernetes.ServiceAccount.UID != string(account.UID) {
			err = fmt.Errorf("the token is of %s, want %s", token.Kubernetes.ServiceAccount.UID, account.UID)
		}
		return err
	})
	wantTokenConditions(t, a, token, account)
	awaitRefused(t, old.raw)
	a.awaitBeat(t, "cluster2", "token", a.awaitBeat(t, "cluster2", "token", beat{}))
}

// wantTokenConditions waits until the conditions tell of a token.
func wantTokenConditions(t *testing.T, a *addOn, token claims, account *corev1.ServiceAccount) {
	t.Helper()
	expires := time.Unix(token.Expires, 0).UTC().Format(time.RFC3339)
	ready := names.TokenServiceAccount{Namespace: account.Namespace, Name: account.Name, UID: string(account.UID)}.Message()
	eventually(t, "the conditions tell of the token", func(ctx context.Context) error {
		obj, err := a.get(ctx, account.Namespace)
		if err != nil {
			return err
		}
		for kind, want := range map[string]string{
			names.ConditionTokenInfrastructureReady: ready,
			names.ConditionAddOnTokenRefreshed:      expires,
			names.ConditionTokenRefreshed:           expires,
		} {
			if c := trueCondition(obj.Status.Conditions, kind); c == nil || !strings.Contains(c.Message, want) {
				return fmt.Errorf("condition %s does not tell %q: %+v", kind, want, obj.Status.Conditions)
			}
		}
		return nil
	})
}

// TestAddOnDriverSwitch changes the driver of a running cluster, to tokens and
// back, while an add-on sends heartbeats.
func TestAddOnDriverSwitch(t *testing.T) {
	t.Parallel()
	fleet.needs(t, "cluster4")
	a := installSample(t, "e2e-switch")
	if err := fleet.joinCluster(t.Context(), "cluster4"); err != nil {
		t.Fatal(err)
	}
	a.add(t, "cluster4")
	a.awaitAgent(t, "cluster4")
	before := a.awaitBeat(t, "cluster4", "certificate", beat{})
	account := names.AddOnServiceAccount("cluster4", a.name)

	for _, to := range []struct{ driver, credential string }{{"token", "token"}, {"csr", "certificate"}} {
		fleet.must(t, "addon-auth", "set", "--context", "cluster4", "--driver", to.driver, "--wait")
		first := a.awaitBeat(t, "cluster4", to.credential, before)
		// However long the switch takes, the old credential serves until the new one is there.
		if first.missed != before.missed || first.refused != before.refused {
			t.Errorf("of %d heartbeats during the switch to %s, %d were missed and %d of them refused: %s",
				first.sequence-before.sequence, to.driver, first.missed-before.missed, first.refused-before.refused, first.failure)
		}
		later := first
		later.sequence += 10
		if later = a.awaitBeat(t, "cluster4", to.credential, later); later.missed != first.missed {
			t.Errorf("%d heartbeats were missed after the switch to %s, %d of them refused: %s",
				later.missed-first.missed, to.driver, later.refused-first.refused, later.failure)
		}
		before = later
		if to.driver == "token" {
			t.Run("two agents", func(t *testing.T) { a.twoAgents(t, "cluster4") })
			before = a.awaitBeat(t, "cluster4", to.credential, before)
		}
	}
	wantNothing(t, a.hub, "the hub takes the token infrastructure away", a.infrastructure("cluster4", account)...)
	eventually(t, "the conditions of driver token go", func(ctx context.Context) error {
		obj, err := a.get(ctx, "cluster4")
		if err != nil {
			return err
		}
		for _, kind := range []string{names.ConditionTokenInfrastructureReady, names.ConditionAddOnTokenRefreshed, names.ConditionTokenRefreshed} {
			if c := apimeta.FindStatusCondition(obj.Status.Conditions, kind); c != nil {
				return fmt.Errorf("there is %+v", c)
			}
		}
		return nil
	})
	if r, err := a.kubeClient(t.Context(), "cluster4"); err != nil || r.Driver != "csr" || r.Subject.User != before.user {
		t.Errorf("the registration is %+v, %v; want driver csr and user %s", r, err, before.user)
	}
}
