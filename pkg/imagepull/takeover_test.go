package imagepull_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// TestOverwrittenServiceAccountGetsNoSecondSecret: a manager that writes
// ServiceAccounts as it knows them removes the annotation and the entry again and
// again. The same Secret is named each time, and after a while it is left alone.
func TestOverwrittenServiceAccountGetsNoSecondSecret(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	app := e.plain(t, "app")
	e.start(t)
	e.bound(t, app)
	pull := e.pull(t, app)
	for i := range 10 {
		e.merge(t, app.DeepCopy(), `{"metadata":{"annotations":null},"imagePullSecrets":null}`, client.FieldOwner("gitops"))
		e.bound(t, e.plain(t, fmt.Sprintf("marker%d", i))) // It had time to react.
		if i == 0 {
			e.bound(t, app)
		}
	}
	e.event(t, app.Name, names.ReasonPullSecretContended, pull.Name)
	if found := e.pullSecrets(t, app.Name); !slices.Equal(found, []string{pull.Name}) {
		t.Errorf("pull secrets %v, want %s alone", found, pull.Name)
	}
	if e.tokensOf(app) != 1 {
		t.Errorf("%d tokens", e.tokensOf(app))
	}
}

// TestWhatOpenShiftMadeIsTakenOver: a pull secret of another controller keeps its
// name, whichever mark of its ServiceAccount it has.
func TestWhatOpenShiftMadeIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(*corev1.Secret, *corev1.ServiceAccount){
		"by its annotation": func(s *corev1.Secret, _ *corev1.ServiceAccount) {
			s.Annotations = map[string]string{names.AnnotationOpenShiftAccount: "app"}
		},
		"by its annotation as the enhancement spells it": func(s *corev1.Secret, _ *corev1.ServiceAccount) {
			s.Annotations = map[string]string{names.AnnotationOpenShiftAcount: "app"}
		},
		"by its owner": func(s *corev1.Secret, a *corev1.ServiceAccount) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: a.Name, UID: a.UID}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newOpenShift(t)
			app := e.plain(t, "app")
			theirs := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app-dockercfg-r4nd0"}, Type: corev1.SecretTypeDockercfg,
				Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
			}
			mark(theirs, app)
			others := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app-dockercfg-other", Annotations: map[string]string{names.AnnotationOpenShiftAccount: "other"}},
				Type:       corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
			}
			e.create(t, theirs, others)
			e.start(t)
			e.bound(t, app)
			pull := e.pull(t, app)
			if pull.UID != theirs.UID || len(pull.OwnerReferences) != 1 || pull.OwnerReferences[0].UID != app.UID {
				t.Errorf("the pull secret is %s, owned by %v", pull.Name, pull.OwnerReferences)
			}
			if found := e.pullSecrets(t, "app"); !slices.Equal(found, []string{others.Name, theirs.Name}) {
				t.Errorf("pull secrets %v", found)
			}
		})
	}
}

// TestHandedOverLegacyPullSecret: one whose marks were changed to those of a bound
// one gets a bound token in the same Secret, and outlives the legacy token.
func TestHandedOverLegacyPullSecret(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	account, legacyToken, pull := e.legacyPair(t, "app")
	e.start(t)
	e.marked(t, account, legacyToken, pull)
	e.merge(t, pull.DeepCopy(), fmt.Sprintf(`{"metadata":{"finalizers":null,
		"annotations":{%q:"bound",%q:%q,%q:null,%q:null},
		"ownerReferences":[{"apiVersion":"v1","kind":"ServiceAccount","name":%q,"uid":%q}]}}`,
		names.AnnotationOpenShiftBinding, names.AnnotationOpenShiftAccount, account.Name,
		names.AnnotationOpenShiftTokenSecret, names.AnnotationOpenShiftTokenValue, account.Name, account.UID))
	e.bound(t, account)
	if now := e.pull(t, account); now.UID != pull.UID {
		t.Errorf("the pull secret is %s", now.Name)
	}
	e.remove(t, legacyToken)
	e.gone(t, legacyToken)
	e.bound(t, e.plain(t, "marker"), account)
	if now := e.pull(t, account); now.UID != pull.UID || len(now.Finalizers) != 0 {
		t.Errorf("the pull secret is %s with %v", now.Name, now.Finalizers)
	}
}

// TestOpenShiftOptOut: an annotation opts out of the preset, too, and leaves what was
// made from a legacy token alone.
func TestOpenShiftOptOut(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	old, legacyToken, legacyPull := e.legacyPair(t, "old")
	app := e.plain(t, "app")
	e.start(t)
	e.bound(t, app)
	e.marked(t, old, legacyToken, legacyPull)
	pull := e.pull(t, app)
	out := `{"metadata":{"annotations":{"` + names.AnnotationPullSecret + `":"false"}}}`
	e.merge(t, app.DeepCopy(), out)
	e.merge(t, old.DeepCopy(), out)
	e.gone(t, pull)
	live := e.live(t.Context(), t, app)
	if _, named := live.Annotations[names.AnnotationOpenShiftPullSecret]; named || len(live.ImagePullSecrets) != 0 {
		t.Errorf("the ServiceAccount has %v and %v", live.Annotations, live.ImagePullSecrets)
	}
	e.bound(t, e.plain(t, "marker"))
	e.marked(t, old, legacyToken, legacyPull)
	if live := e.live(t.Context(), t, old); !lists(live, legacyPull.Name) {
		t.Errorf("the legacy pull secret is not listed: %v", live.ImagePullSecrets)
	}
}

// TestAnotherProcessWritesNothing: all of it is in place, legacy or not.
func TestAnotherProcessWritesNothing(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	old, legacyToken, legacyPull := e.legacyPair(t, "old")
	app := e.plain(t, "app")
	stop := e.start(t)
	e.bound(t, app)
	e.marked(t, old, legacyToken, legacyPull)
	e.settledSecrets(t, old)
	stop()
	e.start(t)
	e.bound(t, e.plain(t, "marker"))
	for _, name := range []string{"/app", "/old"} {
		if writes := e.writes.About(name); len(writes) != 0 {
			t.Errorf("it writes %v", writes)
		}
	}
}

// settledSecrets waits until a ServiceAccount cannot mount its pull secret.
func (e *env) settledSecrets(t *testing.T, account *corev1.ServiceAccount) {
	t.Helper()
	await.Condition(t, patience, "only foreign Secrets are mountable", func(ctx context.Context) (bool, error) {
		return len(e.live(ctx, t, account).Secrets) == 1, nil
	})
}

// TestSurplusPullSecretsExpire: of several Secrets of a ServiceAccount one is kept
// up to date, and no other one is deleted, which pods may still list.
func TestSurplusPullSecretsExpire(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	app := e.plain(t, "app")
	var surplus []*corev1.Secret
	for _, name := range []string{"app-dockercfg-aaaaa", "app-dockercfg-bbbbb", "app-dockercfg-ccccc"} {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.namespace, Name: name, Annotations: map[string]string{names.AnnotationOpenShiftAccount: "app"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "app", UID: app.UID}},
			},
			Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
		}
		surplus = append(surplus, s)
		e.create(t, s)
	}
	e.merge(t, app, `{"metadata":{"annotations":{"`+names.AnnotationOpenShiftPullSecret+`":"app-dockercfg-bbbbb"}}}`)
	e.start(t)
	e.bound(t, app, e.plain(t, "marker"))
	if pull := e.pull(t, app); pull.Name != "app-dockercfg-bbbbb" || e.tokensOf(app) != 1 {
		t.Errorf("%d tokens for %s", e.tokensOf(app), pull.Name)
	}
	for _, s := range surplus {
		if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Error(err)
		}
	}
}

// TestSigningKeysOfOpenShift: another key in the Secret asks for other tokens. If the
// API server signs them with the old one all the same, none is replaced twice.
func TestSigningKeysOfOpenShift(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	e.config.Token.TTL = 12 * time.Hour // No token is due before the keys are known.
	set, err := jwk.Parse(plane.KeySet(t))
	if err != nil {
		t.Fatal(err)
	}
	published := make([]crypto.PublicKey, len(set.Keys))
	for i, key := range set.Keys {
		published[i] = key.Public
	}
	keys := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.OpenShiftSignerNamespace, Name: names.OpenShiftSignerSecret},
		Data:       map[string][]byte{names.OpenShiftSignerKey: inPEM(t, published...)},
	}
	installation.Create(t, e.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: keys.Namespace}})
	e.temporary(t, keys)
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{keys.Name}, Verbs: []string{"get"}}
	meta := metav1.ObjectMeta{Namespace: keys.Namespace, Name: e.namespace}
	e.create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: names.ImagePullNamespace, Name: e.user()}},
	})
	app, own := e.plain(t, "app"), e.own(t)
	e.start(t)
	e.bound(t, app, own)
	e.reads(t, 10)
	if tokens := e.tokensOf(app) + e.tokensOf(own); tokens != 2 {
		t.Errorf("%d tokens though the Secret has the key", tokens)
	}
	keys.Data[names.OpenShiftSignerKey] = inPEM(t, issuer.NewKey(t, "RS256").Private.Public())
	if err := e.admin.Update(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, patience, "another token", func(context.Context) (bool, error) {
		e.clock.Step(time.Minute)
		return e.tokensOf(app)+e.tokensOf(own) > 2, nil // The first one shows that the others need none.
	})
	e.reads(t, 30)
	e.bound(t, e.plain(t, "marker"))
	if e.tokensOf(app) > 2 || e.tokensOf(own) > 2 {
		t.Errorf("%d and %d tokens of an API server that has another key", e.tokensOf(app), e.tokensOf(own))
	}
}

// reads waits for more reads of the signing keys.
func (e *env) reads(t *testing.T, more float64) {
	t.Helper()
	end := e.gauge(t, "ocm_imagepull_signing_key_reads_total", "succeeded") + more
	await.Condition(t, patience, "the signing keys are read", func(context.Context) (bool, error) {
		e.clock.Step(time.Minute)
		return e.gauge(t, "ocm_imagepull_signing_key_reads_total", "succeeded") >= end, nil
	})
}

// inPEM is public keys as OpenShift stores them.
func inPEM(t *testing.T, keys ...crypto.PublicKey) []byte {
	t.Helper()
	var text []byte
	for _, key := range keys {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return text
}

// TestDeletedDuringAWrite: a ServiceAccount that goes just before it is written is not
// made again, and a Secret only as a new one.
func TestDeletedDuringAWrite(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]func(*testing.T) *env{"generic": newEnv, "openshift": newOpenShift} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := form(t)
			app, marker := e.account(t, "app"), e.account(t, "marker")
			var once sync.Once
			in := "/api/v1/namespaces/" + e.namespace
			e.before = func(req *http.Request) {
				switch {
				case req.Method == http.MethodPatch && req.URL.Path == in+"/serviceaccounts/app":
					_ = e.admin.Delete(req.Context(), app.DeepCopy())
				case req.Method == http.MethodPatch && strings.HasPrefix(req.URL.Path, in+"/secrets/marker-"):
					once.Do(func() {
						_ = e.admin.Delete(req.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: path.Base(req.URL.Path)}})
					})
				}
			}
			e.start(t)
			absent := func(ctx context.Context) (bool, error) {
				err := e.admin.Get(ctx, client.ObjectKeyFromObject(app), &corev1.ServiceAccount{})
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			}
			await.Condition(t, patience, "the ServiceAccount is gone", absent)
			await.Condition(t, patience, "the Secret is there again", func(ctx context.Context) (bool, error) {
				return lists(e.live(ctx, t, marker), e.nameOf(marker)), nil
			})
			if gone, err := absent(t.Context()); !gone {
				t.Errorf("the ServiceAccount was made again: %v", err)
			}
			var secret corev1.Secret
			if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: e.nameOf(marker)}, &secret); err != nil {
				t.Fatal(err)
			}
			if s := content.Of(&secret); len(s.Tokens) != 1 || s.Tokens[0].SecretUID != string(secret.UID) || len(secret.OwnerReferences) != 1 {
				t.Errorf("the Secret was made by a write: %+v, %v", s, secret.OwnerReferences)
			}
		})
	}
}

// nameOf is the name of a new pull secret.
func (e *env) nameOf(account *corev1.ServiceAccount) string {
	if e.config.Preset == imagepull.OpenShift {
		return names.OpenShiftPullSecret(account.Name, account.UID)
	}
	return names.PullSecret(account.Name, account.UID)
}

// TestOpenShiftBurstMintsOnce: each ServiceAccount of a burst costs one Secret and one
// token, though its cache entry changes four times.
func TestOpenShiftBurstMintsOnce(t *testing.T) {
	t.Parallel()
	const many = 50
	e := newOpenShift(t)
	e.start(t)
	var accounts []*corev1.ServiceAccount
	for i := range many {
		accounts = append(accounts, e.plain(t, fmt.Sprintf("sa%d", i)))
	}
	e.bound(t, accounts...)
	for _, account := range accounts {
		if made, tokens := e.pullSecrets(t, account.Name), e.tokensOf(account); len(made) != 1 || tokens != 1 {
			t.Errorf("%d tokens for %v", tokens, made)
		}
	}
}

// TestOpenShiftCacheHoldsNoToken: neither in the data nor in the annotations of what
// is taken over.
func TestOpenShiftCacheHoldsNoToken(t *testing.T) {
	t.Parallel()
	e := newOpenShift(t)
	account, legacyToken, pull := e.legacyPair(t, "old")
	app := e.plain(t, "app")
	e.start(t)
	e.bound(t, app)
	e.marked(t, account, legacyToken, pull)
	var cached corev1.SecretList
	if err := e.cached.List(t.Context(), &cached, client.InNamespace(e.namespace)); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(cached.Items)
	if err != nil || len(cached.Items) < 2 {
		t.Fatalf("%d Secrets are cached, %v", len(cached.Items), err)
	}
	for _, value := range []string{string(legacyToken.Data[corev1.ServiceAccountTokenKey]), cfgToken(t, e.pull(t, app))} {
		signature := value[strings.LastIndexByte(value, '.')+1:]
		for _, trace := range logs.Traces(signature) {
			if strings.Contains(string(text), trace) {
				t.Error("a token is cached")
			}
		}
	}
	for i := range cached.Items {
		for _, data := range cached.Items[i].Data { // JSON has it in base64.
			if strings.Contains(string(data), "eyJ") {
				t.Errorf("a token of %s is cached", cached.Items[i].Name)
			}
		}
	}
}
