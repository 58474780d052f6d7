package imagepull_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// newOpenShift is an env with the preset of OpenShift.
func newOpenShift(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.config.Preset, e.config.Audience, e.config.Namespaces = imagepull.OpenShift, "", []string{e.namespace}
	e.config.Token = token.Spec{TTL: time.Hour, Username: "<token>", Format: imagepull.DockerCfg}
	return e
}

// plain makes a ServiceAccount without any mark.
func (e *env) plain(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	e.create(t, account)
	return account
}

// own is the ServiceAccount that Kubernetes makes in each namespace.
func (e *env) own(t *testing.T) *corev1.ServiceAccount {
	t.Helper()
	own := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "default"}}
	await.Success(t, patience, "there is the namespace's own ServiceAccount", func(ctx context.Context) error {
		return e.admin.Get(ctx, client.ObjectKeyFromObject(own), own)
	})
	return own
}

// legacyPair makes a ServiceAccount with what OpenShift's controllers made for it
// before tokens were bound: a token that does not expire, and a pull secret with it.
func (e *env) legacyPair(t *testing.T, name string) (account *corev1.ServiceAccount, legacyToken, pull *corev1.Secret) {
	t.Helper()
	account = e.plain(t, name)
	legacyToken = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name + "-token-x2vlq", Annotations: map[string]string{
			corev1.ServiceAccountNameKey: name, names.AnnotationCreatedBy: names.OpenShiftDockercfg,
		}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	e.create(t, legacyToken)
	await.Condition(t, patience, "the legacy token is there", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(legacyToken), legacyToken)
		return len(legacyToken.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	value := string(legacyToken.Data[corev1.ServiceAccountTokenKey])
	data, err := content.Encode(content.DockerCfg, content.Credential{Hosts: []string{host}, Username: "serviceaccount", Token: value})
	if err != nil {
		t.Fatal(err)
	}
	pull = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: name + "-dockercfg-x2vlq",
			Annotations: map[string]string{
				corev1.ServiceAccountNameKey: name, corev1.ServiceAccountUIDKey: string(account.UID),
				names.AnnotationOpenShiftTokenSecret: legacyToken.Name, names.AnnotationOpenShiftTokenValue: value,
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: legacyToken.Name, UID: legacyToken.UID, Controller: new(true)}},
		},
		Type: corev1.SecretTypeDockercfg, Data: data,
	}
	e.create(t, pull)
	e.merge(t, account, fmt.Sprintf(`{"imagePullSecrets":[{"name":"theirs"},{"name":%[1]q}],"secrets":[{"name":"theirs"},{"name":%[1]q}]}`, pull.Name))
	return account, legacyToken, pull
}

// bound waits until ServiceAccounts have pull secrets with bound tokens.
func (e *env) bound(t *testing.T, accounts ...*corev1.ServiceAccount) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		for _, account := range accounts {
			if _, missing := e.lacksBound(ctx, t, account); missing != "" {
				return account.Name + ": " + missing
			}
		}
		return ""
	})
}

// lacksBound returns the pull secret of a ServiceAccount and what it lacks.
func (e *env) lacksBound(ctx context.Context, t *testing.T, account *corev1.ServiceAccount) (pull *corev1.Secret, missing string) {
	t.Helper()
	live := e.live(ctx, t, account)
	pull = &corev1.Secret{}
	if err := e.admin.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: live.Annotations[names.AnnotationOpenShiftPullSecret]}, pull); err != nil {
		return nil, err.Error()
	}
	summary := content.Of(pull)
	switch {
	case pull.Type != corev1.SecretTypeDockercfg:
		return pull, "the type " + string(pull.Type)
	case pull.Annotations[names.AnnotationOpenShiftBinding] != names.OpenShiftBound:
		return pull, "the binding " + pull.Annotations[names.AnnotationOpenShiftBinding]
	case pull.Annotations[names.AnnotationOpenShiftAccount] != account.Name:
		return pull, "another ServiceAccount"
	case summary.Problem != "" || len(summary.Tokens) != 1 || summary.Tokens[0].SecretUID != string(pull.UID) || summary.Tokens[0].AccountUID != string(account.UID):
		return pull, fmt.Sprintf("%+v", summary)
	case !slices.Equal(summary.Hosts(), []string{host}) || summary.Tokens[0].Username != "<token>":
		return pull, fmt.Sprintf("%+v", summary)
	case !lists(live, pull.Name):
		return pull, "not listed"
	}
	return pull, ""
}

// pull is the pull secret of a ServiceAccount, which has one.
func (e *env) pull(t *testing.T, account *corev1.ServiceAccount) *corev1.Secret {
	t.Helper()
	found, missing := e.lacksBound(t.Context(), t, account)
	if missing != "" {
		t.Fatal(missing)
	}
	return found
}

// secrets are the names of all Secrets of a type.
func (e *env) secrets(t *testing.T, kind corev1.SecretType) []string {
	t.Helper()
	var found corev1.SecretList
	if err := e.admin.List(t.Context(), &found, client.InNamespace(e.namespace), client.MatchingFields{"type": string(kind)}); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for i := range found.Items {
		listed[found.Items[i].Name] = true
	}
	return slices.Sorted(maps.Keys(listed))
}

// pullSecrets are the names of all pull secrets that look like those of a
// ServiceAccount.
func (e *env) pullSecrets(t *testing.T, account string) []string {
	t.Helper()
	return slices.DeleteFunc(e.secrets(t, corev1.SecretTypeDockercfg), func(name string) bool { return !strings.HasPrefix(name, account+"-") })
}

// tokensOf are the TokenRequests for a ServiceAccount.
func (e *env) tokensOf(account *corev1.ServiceAccount) int {
	return len(e.writes.About("/serviceaccounts/" + account.Name + "/token"))
}

// marked waits until legacy Secrets are marked.
func (e *env) marked(t *testing.T, account *corev1.ServiceAccount, legacyToken, pull *corev1.Secret) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		for _, secret := range []*corev1.Secret{legacyToken, pull} {
			if err := e.admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
				return err.Error()
			}
		}
		switch live := e.live(ctx, t, account); {
		case legacyToken.Labels[names.OpenShiftLegacyToken] != "true":
			return "the token has no label"
		case pull.Annotations[names.AnnotationOpenShiftBinding] != names.OpenShiftLegacy || !slices.Contains(pull.Finalizers, names.OpenShiftLegacyToken):
			return fmt.Sprintf("the pull secret is not marked: %v", pull.Finalizers)
		case live.Annotations[names.AnnotationOpenShiftPullSecret] != pull.Name:
			return "the ServiceAccount does not name it"
		}
		return ""
	})
}

// gone waits until Secrets are gone.
func (e *env) gone(t *testing.T, secrets ...*corev1.Secret) {
	t.Helper()
	for _, secret := range secrets {
		await.Condition(t, patience, secret.Name+" is gone", func(ctx context.Context) (bool, error) {
			err := e.admin.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
			return err != nil, client.IgnoreNotFound(err)
		})
	}
}

func (e *env) remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := e.admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// TestBoundTokensForTheIntegratedRegistry are the scenarios of OpenShift's
// enhancement "Use Bound Tokens for Integrated Image Registry Authentication".
func TestBoundTokensForTheIntegratedRegistry(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]func(*testing.T, *env){
		"New cluster created":                                    newCluster,
		"Existing managed secrets":                               existingSecrets,
		"New service accounts created after upgrade":             newAccounts,
		"Deleting a legacy managed image pull secret":            deletingThePullSecret,
		"Deleting a legacy managed service account token secret": deletingTheToken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, newOpenShift(t))
		})
	}
}

func newCluster(t *testing.T, e *env) {
	t.Helper()
	t.Log("Given a freshly install cluster")
	app, own := e.plain(t, "app"), e.own(t)
	e.start(t)
	e.bound(t, app, own)
	t.Log("Then no legacy service account token secrets are generated")
	if found := e.secrets(t, corev1.SecretTypeServiceAccountToken); len(found) != 0 {
		t.Errorf("token Secrets %v", found)
	}
	t.Log("And the managed image pull secrets generated contain bound tokens")
	pull := e.pull(t, app)
	issued := content.Of(pull).Tokens[0]
	if life := issued.Expires - issued.Issued; life != 3600 || !authenticates(t, e.admin, cfgToken(t, pull)) {
		t.Errorf("the token lives for %d s", life)
	}
	if live := e.live(t.Context(), t, app); len(live.Secrets) != 0 || len(live.ImagePullSecrets) != 1 {
		t.Errorf("the ServiceAccount has %v and %v", live.Secrets, live.ImagePullSecrets)
	}
	if requests := e.writes.About("/token"); len(requests) != 2 {
		t.Errorf("tokens for two ServiceAccounts: %v", requests)
	}
}

func existingSecrets(t *testing.T, e *env) {
	t.Helper()
	t.Log("Given an existing cluster version N-1")
	account, legacyToken, pull := e.legacyPair(t, "app")
	before := string(pull.Data[corev1.DockerConfigKey])
	uids := fmt.Sprint(legacyToken.UID, pull.UID)
	t.Log("And the cluster is upgrated to version N")
	e.start(t)
	e.marked(t, account, legacyToken, pull)
	e.bound(t, e.plain(t, "marker"))
	t.Log("Then no legacy managed service account tokens are deleted")
	e.marked(t, account, legacyToken, pull)
	if fmt.Sprint(legacyToken.UID, pull.UID) != uids {
		t.Error("the Secrets were made anew")
	}
	t.Log("And no legacy managed integrated image registry pull secrets are updated")
	if string(pull.Data[corev1.DockerConfigKey]) != before || e.tokensOf(account) != 0 {
		t.Error("the pull secret has another token")
	}
	if found := e.pullSecrets(t, account.Name); !slices.Equal(found, []string{pull.Name}) {
		t.Errorf("pull secrets %v", found)
	}
	live := e.live(t.Context(), t, account)
	if len(live.Secrets) != 1 || live.Secrets[0].Name != "theirs" || len(live.ImagePullSecrets) != 2 {
		t.Errorf("the ServiceAccount has %v and %v", live.Secrets, live.ImagePullSecrets)
	}
}

func newAccounts(t *testing.T, e *env) {
	t.Helper()
	_, legacyToken, _ := e.legacyPair(t, "old")
	t.Log("When the cluster is upgrated to version N")
	e.start(t)
	t.Log("And a new service account is created")
	account := e.plain(t, "app")
	t.Log("Then a new managed integrated image pull secret will be generated")
	e.bound(t, account)
	t.Log("And the auth values will be bound service account tokens")
	if !authenticates(t, e.admin, cfgToken(t, e.pull(t, account))) {
		t.Error("the token is not accepted")
	}
	t.Log("And no legacy service account token secrets will be generated")
	if found := e.secrets(t, corev1.SecretTypeServiceAccountToken); !slices.Equal(found, []string{legacyToken.Name}) {
		t.Errorf("token Secrets %v", found)
	}
}

func deletingThePullSecret(t *testing.T, e *env) {
	t.Helper()
	account, legacyToken, pull := e.legacyPair(t, "app")
	e.start(t)
	e.marked(t, account, legacyToken, pull)
	t.Log("When a legacy managed image pull secret is deleted")
	e.remove(t, pull)
	t.Log("Then the corresponding legacy managed service account token secret will be deleted")
	e.gone(t, legacyToken, pull)
	e.regenerated(t, account, pull)
}

func deletingTheToken(t *testing.T, e *env) {
	t.Helper()
	account, legacyToken, pull := e.legacyPair(t, "app")
	e.start(t)
	e.marked(t, account, legacyToken, pull)
	t.Log("When a legacy managed service account token secret is deleted")
	e.remove(t, legacyToken)
	t.Log("Then the corresponding legacy managed image pull secret will be deleted")
	e.gone(t, legacyToken, pull)
	e.regenerated(t, account, pull)
}

func (e *env) regenerated(t *testing.T, account *corev1.ServiceAccount, before *corev1.Secret) {
	t.Helper()
	t.Log("And the managed integrated image pull secret will be re-generated")
	e.bound(t, account)
	t.Log("And the auth values will be bound service account tokens")
	now := e.pull(t, account)
	if !authenticates(t, e.admin, cfgToken(t, now)) || now.Name != names.OpenShiftPullSecret(account.Name, account.UID) {
		t.Errorf("the pull secret %s has another token", now.Name)
	}
	live := e.live(t.Context(), t, account)
	want := []corev1.LocalObjectReference{{Name: "theirs"}, {Name: now.Name}}
	if !slices.Equal(live.ImagePullSecrets, want) || lists(live, before.Name) || len(live.Secrets) != 1 {
		t.Errorf("the ServiceAccount has %v and %v", live.Secrets, live.ImagePullSecrets)
	}
}

// cfgToken is the token in a pull secret of OpenShift's type.
func cfgToken(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	var auths map[string]any
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigKey], &auths); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return tokenOf(t, &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: data}})
}
