package imagepull_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/signer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/docs"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// dockerConfig is what a kubelet reads.
type dockerConfig struct {
	Auths map[string]struct {
		Auth string `json:"auth"`
	} `json:"auths"`
}

func decode(t *testing.T, secret *corev1.Secret) dockerConfig {
	t.Helper()
	var config dockerConfig
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
		return dockerConfig{}
	}
	return config
}

func hostsOf(t *testing.T, secret *corev1.Secret) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(decode(t, secret).Auths))
}

// tokenOf is the token in a pull secret.
func tokenOf(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	for _, entry := range decode(t, secret).Auths {
		return password(t, entry.Auth)
	}
	t.Fatal("the pull secret has no token")
	return ""
}

// password is that of a credential in base64.
func password(t *testing.T, auth string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(string(text), ":")
	return token
}

// authenticates reports whether the API server takes a token for audiences.
func authenticates(t *testing.T, admin client.Client, token string, audiences ...string) bool {
	t.Helper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	if err := admin.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Authenticated
}

func TestPullSecretOfASelectedServiceAccount(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "other"}}
	e.create(t, other)
	stop := e.start(t)
	e.settled(t, []string{host}, app)
	secret := e.secret(t.Context(), t, app)
	if secret.Type != corev1.SecretTypeDockerConfigJson || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != app.UID {
		t.Errorf("the Secret is %s, owned by %+v", secret.Type, secret.OwnerReferences)
	}
	if e.secret(t.Context(), t, other) != nil || len(e.live(t.Context(), t, other).ImagePullSecrets) != 0 {
		t.Error("a ServiceAccount that was not opted in has a pull secret")
	}
	if live := e.live(t.Context(), t, app); len(live.Secrets) != 0 {
		t.Errorf("mountable Secrets: %v", live.Secrets)
	}
	want := []string{
		"POST /api/v1/namespaces/" + e.namespace + "/secrets",
		"POST /api/v1/namespaces/" + e.namespace + "/serviceaccounts/app/token",
		"PATCH /api/v1/namespaces/" + e.namespace + "/secrets/" + secret.Name,
		"PATCH /api/v1/namespaces/" + e.namespace + "/serviceaccounts/app",
	}
	if got := e.writes.About(e.namespace); !slices.Equal(got, want) {
		t.Errorf("writes %v, want %v: data comes before the entry", got, want)
	}
	stop()
	marker := e.account(t, "marker") // When it has its pull secret, app was looked at.
	e.start(t)
	e.settled(t, []string{host}, app, marker)
	if writes := e.writes.About("app"); len(writes) != 0 {
		t.Errorf("another process writes %v", writes)
	}
}

// TestMetricsShowTheState: how many pull secrets are good, and when the first
// token expires.
func TestMetricsShowTheState(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t)
	e.settled(t, []string{host}, e.account(t, "a"), e.account(t, "b"))
	await.Condition(t, patience, "two valid pull secrets", func(context.Context) (bool, error) {
		return e.gauge(t, "ocm_imagepull_secrets", "Valid") == 2, nil
	})
	now := float64(e.clock.Now().Unix())
	if first := e.gauge(t, "ocm_imagepull_first_expiry_seconds", ""); first < now+11*3600 || first > now+13*3600 {
		t.Errorf("the first expires %v s from now", first-now)
	}
	e.clock.Step(11 * time.Hour)
	if due := e.gauge(t, "ocm_imagepull_secrets", "NearExpiry"); due != 2 {
		t.Errorf("%v are due", due)
	}
}

// gauge is the value of a gauge or a counter, whose label has a value if it has one.
func (e *env) gauge(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := e.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue() // It has one of them.
			}
		}
	}
	return 0
}

// TestTokenIsNoCredentialOfTheAPIServer: a token in a pull secret is good for the
// audience of the registries and for nothing else, and dies with the Secret.
func TestTokenIsNoCredentialOfTheAPIServer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	stop := e.start(t)
	e.settled(t, []string{host}, app)
	stop()
	secret := e.secret(t.Context(), t, app)
	token := tokenOf(t, secret)
	if !authenticates(t, e.admin, token, audience) || authenticates(t, e.admin, token) {
		t.Error("the token is not for the audience of the registries alone")
	}
	if err := e.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, patience, "the token is void", func(context.Context) (bool, error) {
		return !authenticates(t, e.admin, token, audience), nil
	})
}

// TestBurstMintsOnce: of many ServiceAccounts that are made at once each costs one
// Secret, one token, one write of data and one of its list, whatever caches show.
func TestBurstMintsOnce(t *testing.T) {
	t.Parallel()
	const many = 100
	e := newEnv(t)
	e.start(t)
	var accounts []*corev1.ServiceAccount
	for i := range many {
		accounts = append(accounts, e.account(t, fmt.Sprintf("sa%d", i)))
	}
	e.settled(t, []string{host}, accounts...)
	if minted, attached := e.minted(), e.attached(); minted != many || attached != many {
		t.Errorf("%d tokens and %d entries for %d ServiceAccounts", minted, attached, many)
	}
	if made := len(e.writes.About("/secrets")); made != 2*many {
		t.Errorf("%d writes of Secrets, want %d", made, 2*many)
	}
}

func TestRecreatedServiceAccount(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t)
	first := e.account(t, "app")
	e.settled(t, []string{host}, first)
	if err := e.admin.Delete(t.Context(), first.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	second := e.account(t, "app")
	e.settled(t, []string{host}, second)
	await.Condition(t, patience, "the Secret of the first is gone", func(ctx context.Context) (bool, error) {
		return e.secret(ctx, t, first) == nil, nil
	})
	if live := e.live(t.Context(), t, second); len(live.ImagePullSecrets) != 1 {
		t.Errorf("imagePullSecrets: %v", live.ImagePullSecrets)
	}
}

// TestDeletedWhileTheControllerWasAway: what it did not see happen, a deleted
// Secret, is made good at the next start.
func TestDeletedWhileTheControllerWasAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	stop := e.start(t)
	e.settled(t, []string{host}, app)
	stop()
	before := e.secret(t.Context(), t, app)
	if err := e.admin.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	e.start(t)
	e.settled(t, []string{host}, app)
	if after := e.secret(t.Context(), t, app); after.UID == before.UID || !authenticates(t, e.admin, tokenOf(t, after), audience) {
		t.Error("the token is not that of the new Secret")
	}
}

// TestOptingOutLeavesNothing: neither entry nor Secret; entries of others stay.
func TestOptingOutLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	e.merge(t, app, `{"imagePullSecrets":[{"name":"theirs"}]}`)
	e.start(t)
	e.settled(t, []string{host}, app)
	if live := e.live(t.Context(), t, app); len(live.ImagePullSecrets) != 2 || live.ImagePullSecrets[0].Name != "theirs" {
		t.Errorf("imagePullSecrets: %v", live.ImagePullSecrets)
	}
	e.merge(t, app.DeepCopy(), `{"metadata":{"annotations":{"`+names.AnnotationPullSecret+`":"false"}}}`)
	await.Condition(t, patience, "the pull secret is gone", func(ctx context.Context) (bool, error) {
		return e.secret(ctx, t, app) == nil, nil
	})
	if live := e.live(t.Context(), t, app); len(live.ImagePullSecrets) != 1 || live.ImagePullSecrets[0].Name != "theirs" {
		t.Errorf("imagePullSecrets: %v", live.ImagePullSecrets)
	}
}

// TestNamespaceOptsIn: the annotation of a namespace is for all of its
// ServiceAccounts, also when it comes later.
func TestNamespaceOptsIn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app"}}
	out := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: "out", Annotations: map[string]string{names.AnnotationPullSecret: "false"},
	}}
	marker := e.account(t, "marker")
	e.create(t, app, out)
	e.start(t)
	e.settled(t, []string{host}, marker)
	e.merge(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}, `{"metadata":{"annotations":{"`+names.AnnotationPullSecret+`":"true"}}}`)
	e.settled(t, []string{host}, app)
	if e.secret(t.Context(), t, out) != nil {
		t.Error("a ServiceAccount that is opted out has a pull secret")
	}
}

// TestNamedNamespaces: in namespaces that are named, all ServiceAccounts but those
// that are opted out have pull secrets, with permissions there alone.
func TestNamedNamespaces(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	second := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pull-"}}
	e.create(t, second)
	e.config.Namespaces = []string{e.namespace, second.Name}
	app := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app"}}
	out := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: "out", Annotations: map[string]string{names.AnnotationPullSecret: "false"},
	}}
	there := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: second.Name, Name: "app"}}
	e.create(t, app, out, there)
	e.start(t)
	e.settled(t, []string{host}, app, there)
	if e.secret(t.Context(), t, out) != nil {
		t.Error("a ServiceAccount that is opted out has a pull secret")
	}
	user := plane.ConfigForAccount(t, names.ImagePullNamespace, e.user())
	elsewhere, err := client.New(user, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing all Secrets: %v", err)
	}
}

// TestOnlyUsed: of selected ServiceAccounts only those have a pull secret that a
// workload names, from when it does; the secret stays when the workload goes.
func TestOnlyUsed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.config.Namespaces, e.config.OnlyUsed = []string{e.namespace}, true
	var accounts []*corev1.ServiceAccount
	for _, name := range []string{"pod", "deployment", "cronjob", "unused"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
		accounts = append(accounts, account)
		e.create(t, account)
	}
	used, unused := accounts[:3], accounts[3]
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "app"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "deployment", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "app", Image: host + "/app"}},
		},
	}
	meta := metav1.ObjectMeta{Namespace: e.namespace, Name: "app"}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: metav1.SetAsLabelSelector(template.Labels), Template: template,
	}}
	e.create(t, deployment)
	e.start(t)
	e.settled(t, []string{host}, used[1])
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Spec.ServiceAccountName = "pod"
	cronJob := &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "@daily"}}
	cronJob.Spec.JobTemplate.Spec.Template = *template.DeepCopy()
	cronJob.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName = "cronjob"
	cronJob.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	e.create(t, pod, cronJob)
	e.settled(t, []string{host}, used...)
	if e.secret(t.Context(), t, unused) != nil {
		t.Error("a ServiceAccount that is not used has a pull secret")
	}
	if err := e.admin.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	e.merge(t, cronJob, `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"serviceAccountName":"unused"}}}}}}`)
	e.settled(t, []string{host}, accounts...)
}

// TestRenewedInPlace: a token is renewed once when it is due, in the same Secret,
// and nothing else is written.
func TestRenewedInPlace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	stop := e.start(t)
	e.settled(t, []string{host}, app)
	stop()
	before := e.secret(t.Context(), t, app)
	e.clock.Step(8 * time.Hour)
	e.start(t)
	await.Condition(t, patience, "another token", func(ctx context.Context) (bool, error) {
		return tokenOf(t, e.secret(ctx, t, app)) != tokenOf(t, before), nil
	})
	// By the moved clock the new one is due as well: it must wait all the same.
	e.settled(t, []string{host}, e.account(t, "marker"))
	after := e.secret(t.Context(), t, app)
	if after.UID != before.UID {
		t.Error("the Secret was made anew")
	}
	if writes := e.writes.About("app"); len(writes) != 2 {
		t.Errorf("writes %v, want one TokenRequest and one of the Secret", writes)
	}
}

func TestSpoiledDataIsReplaced(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	secret := e.secret(t.Context(), t, app)
	good := secret.Data[corev1.DockerConfigJsonKey]
	for name, spoilt := range map[string]string{
		"no token":        `{"auths":{}}`,
		"another's token": `{"auths":{"` + host + `":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`,
		"another host":    strings.Replace(string(good), host, "elsewhere.example.com", 1),
	} {
		e.clock.Step(2 * time.Minute) // One token a minute is the most.
		encoded := base64.StdEncoding.EncodeToString([]byte(spoilt))
		e.merge(t, secret.DeepCopy(), `{"data":{".dockerconfigjson":"`+encoded+`"}}`)
		await.Condition(t, patience, name+" is replaced", func(ctx context.Context) (bool, error) {
			now := e.secret(ctx, t, app)
			return slices.Equal(hostsOf(t, now), []string{host}) && authenticates(t, e.admin, tokenOf(t, now), audience), nil
		})
	}
}

// TestHostsOfAConfigMap: without a host nothing is written and an event says so;
// the first host starts the work without a restart; duplicates are one; a list that
// is emptied leaves what there is.
func TestHostsOfAConfigMap(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.config.Hosts, e.config.Lookup.ConfigMap = nil, types.NamespacedName{Namespace: e.namespace, Name: "registries"}
	hosts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "registries"}}
	e.create(t, hosts)
	app := e.account(t, "app")
	e.start(t)
	e.event(t, hosts.Name, registry.ReasonNoHosts, "hosts")
	if e.secret(t.Context(), t, app) != nil {
		t.Error("there is a pull secret for no registry")
	}
	e.merge(t, hosts.DeepCopy(), `{"data":{"hosts":"b.example.com a.example.com\na.example.com, b.example.com"}}`)
	e.settled(t, []string{"a.example.com", "b.example.com"}, app)
	if minted := e.minted(); minted != 1 {
		t.Errorf("%d tokens", minted)
	}
	before := e.secret(t.Context(), t, app)
	e.clock.Step(2 * time.Minute)
	e.merge(t, hosts.DeepCopy(), `{"data":{"hosts":"c.example.com:5000"}}`)
	e.settled(t, []string{"c.example.com:5000"}, app)
	e.merge(t, hosts.DeepCopy(), `{"data":{"hosts":"https://"}}`)
	e.event(t, hosts.Name, registry.ReasonHostsInvalid, "https://")
	e.clock.Step(2 * time.Minute)
	if err := e.admin.Delete(t.Context(), hosts.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, patience, "the list is empty", func(ctx context.Context) (bool, error) {
		// What is made then gets no pull secret; what was made before shows that.
		err := e.cached.Get(ctx, client.ObjectKeyFromObject(hosts), &corev1.ConfigMap{})
		return apierrors.IsNotFound(err), nil
	})
	after := e.secret(t.Context(), t, app)
	if after == nil || after.UID != before.UID || !slices.Equal(hostsOf(t, after), []string{"c.example.com:5000"}) {
		t.Error("without a host the pull secret did not stay as it was")
	}
	if minted := e.minted(); minted != 2 {
		t.Errorf("%d tokens", minted)
	}
}

// TestAudiencesOfRegistries: each registry gets a token for its own audience, and
// those with the same audience share one.
func TestAudiencesOfRegistries(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.config.Hosts = []string{host, "mirror.example.com", "other.example.com=other"}
	app := e.account(t, "app")
	stop := e.start(t)
	e.settled(t, []string{"mirror.example.com", "other.example.com", host}, app)
	auths := decode(t, e.secret(t.Context(), t, app)).Auths
	if auths[host] != auths["mirror.example.com"] {
		t.Error("registries with one audience have two tokens")
	}
	for name, want := range map[string]string{host: audience, "other.example.com": "other"} {
		token := password(t, auths[name].Auth)
		for _, to := range []string{audience, "other"} {
			if got := authenticates(t, e.admin, token, to); got != (to == want) {
				t.Errorf("the token for %s is good for %s: %t", name, to, got)
			}
		}
	}
	stop()
	if minted := e.minted(); minted != 2 {
		t.Errorf("%d tokens", minted)
	}
	e.config.Hosts = []string{host, "mirror.example.com=other", "other.example.com=other"}
	e.start(t)
	await.Condition(t, patience, "the mirror has the other token", func(ctx context.Context) (bool, error) {
		auths := decode(t, e.secret(ctx, t, app)).Auths
		return auths["mirror.example.com"] == auths["other.example.com"] && auths[host] != auths["other.example.com"], nil
	})
}

// TestFormats: what a kubelet reads has the token in each format. A Secret whose
// type does not fit is made anew; between the others it stays.
func TestFormats(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	var before *corev1.Secret
	for _, tc := range []struct {
		format imagepull.Format
		keys   []string
		again  bool
	}{
		{content.DockerConfigJSON, []string{corev1.DockerConfigJsonKey}, true},
		{content.Both, []string{corev1.DockerConfigKey, corev1.DockerConfigJsonKey}, false},
		{content.DockerCfg, []string{corev1.DockerConfigKey}, true},
		{content.DockerConfigJSON, []string{corev1.DockerConfigJsonKey}, true},
	} {
		e.config.Token.Format = tc.format
		e.clock.Step(2 * time.Minute) // One token a minute is the most.
		stop := e.start(t)
		await.Condition(t, patience, "the format "+string(tc.format), func(ctx context.Context) (bool, error) {
			now := e.secret(ctx, t, app)
			return now != nil && slices.Equal(slices.Sorted(maps.Keys(now.Data)), tc.keys) &&
				content.Of(now).Usable(e.clock.Now()) && lists(e.live(ctx, t, app), now.Name), nil
		})
		stop()
		now := e.secret(t.Context(), t, app)
		if now.Type != tc.format.Type() || (before == nil || before.UID != now.UID) != tc.again {
			t.Errorf("%s is in a Secret %s of type %s", tc.format, now.UID, now.Type)
		}
		before = now
	}
}

// TestContendedListIsLeftAlone: a manager that owns imagePullSecrets removes the
// entry again and again; the controller stops, names it, and goes on when the
// ServiceAccount changes.
func TestContendedListIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	e.start(t)
	for range 3 {
		e.settled(t, []string{host}, app)
		e.merge(t, app.DeepCopy(), `{"imagePullSecrets":[{"name":"theirs"}]}`, client.FieldOwner("gitops"))
	}
	e.event(t, app.Name, names.ReasonPullSecretContended, `"gitops"`)
	e.settled(t, []string{host}, e.account(t, "marker"))
	if live := e.live(t.Context(), t, app); len(live.ImagePullSecrets) != 1 || e.attached() != 4 {
		t.Errorf("after %d writes of ServiceAccounts it lists %v", e.attached(), live.ImagePullSecrets)
	}
	e.merge(t, app.DeepCopy(), `{"imagePullSecrets":[{"name":"theirs"},{"name":"another"}]}`, client.FieldOwner("gitops"))
	e.settled(t, []string{host}, app)
}

// TestSkewedSigningKeysCauseNoLoop: where the key that signs is not in the key set
// that is read, because the API servers disagree or never publish it, tokens stay.
func TestSkewedSigningKeysCauseNoLoop(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	foreign := []string{issuer.NewKey(t, "RS256").ID}
	var reads atomic.Int32
	e.config.SigningKeys = func(context.Context) ([]string, error) { reads.Add(1); return foreign, nil }
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	secret := e.secret(t.Context(), t, app)
	await.Condition(t, patience, "enough reads to retire a key", func(context.Context) (bool, error) {
		e.clock.Step(time.Minute)
		return reads.Load() > 10, nil
	})
	e.merge(t, secret.DeepCopy(), `{"metadata":{"annotations":{"look":"again"}}}`)
	e.settled(t, []string{host}, e.account(t, "marker"))
	if minted := e.minted(); minted != 2 {
		t.Errorf("%d tokens for two ServiceAccounts", minted)
	}
}

// TestRetiredSigningKey: a key that the cluster has published and no longer
// publishes costs each pull secret one new token.
func TestRetiredSigningKey(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	published, err := signer.KeyIDs(plane.KeySet(t))
	if err != nil {
		t.Fatal(err)
	}
	current := make(chan []string, 1)
	current <- published
	e.config.SigningKeys = func(context.Context) ([]string, error) {
		set := <-current
		defer func() { current <- set }()
		return set, nil
	}
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	<-current
	current <- []string{issuer.NewKey(t, "RS256").ID}
	before := tokenOf(t, e.secret(t.Context(), t, app))
	await.Condition(t, patience, "another token", func(ctx context.Context) (bool, error) {
		e.clock.Step(time.Minute) // One more read.
		return tokenOf(t, e.secret(ctx, t, app)) != before, nil
	})
	if minted := e.minted(); minted != 2 {
		t.Errorf("%d tokens", minted)
	}
}

// TestCacheHoldsNoToken: the controllers see only their own Secrets, and no token.
func TestCacheHoldsNoToken(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "theirs"}, StringData: map[string]string{"password": "1234567890"},
	})
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	token := tokenOf(t, e.secret(t.Context(), t, app))
	signature := token[strings.LastIndexByte(token, '.')+1:]
	var cached corev1.SecretList
	if err := e.cached.List(t.Context(), &cached); err != nil {
		t.Fatal(err)
	}
	if len(cached.Items) != 1 || cached.Items[0].Name == "theirs" {
		t.Fatalf("%d Secrets are cached", len(cached.Items))
	}
	for _, trace := range logs.Traces(signature) {
		for key, value := range cached.Items[0].Data {
			if strings.Contains(string(value), trace) {
				t.Errorf("the token is cached under %s", key)
			}
		}
	}
}

// TestForeignSecretOfThatNameIsLeftAlone: a Secret that is not the controller's
// keeps its content, and an event says what is in the way.
func TestForeignSecretOfThatNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	app := e.account(t, "app")
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: names.PullSecret("app", app.UID)},
		StringData: map[string]string{"password": "1234567890"},
	}
	e.create(t, foreign)
	e.start(t)
	e.event(t, app.Name, names.ReasonPullSecretNameTaken, foreign.Name)
	if now := e.secret(t.Context(), t, app); now.ResourceVersion != foreign.ResourceVersion {
		t.Error("a foreign Secret was written")
	}
}

// event waits for an event about an object whose note has a text.
func (e *env) event(t *testing.T, object, reason, text string) {
	t.Helper()
	var last []string
	await.Condition(t, patience, "event "+reason+" about "+object, func(ctx context.Context) (bool, error) {
		var found eventsv1.EventList
		if err := e.admin.List(ctx, &found, client.InNamespace(e.namespace)); err != nil {
			return false, err
		}
		last = nil
		for i := range found.Items {
			item := &found.Items[i]
			last = append(last, item.Regarding.Name+" "+item.Reason+": "+item.Note)
			if item.Regarding.Name == object && item.Reason == reason && strings.Contains(item.Note, text) {
				return true, nil
			}
		}
		return false, nil
	}, func() any { return last })
}

// TestValidate: what cannot work is refused before anything starts.
func TestValidate(t *testing.T) {
	t.Parallel()
	good := func() imagepull.Config {
		c := imagepull.Config{Hosts: []string{host}, RefreshQPS: 1}
		c.Token.TTL, c.Token.Format = time.Hour, content.DockerCfg
		return c
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for text, spoil := range map[string]func(*imagepull.Config){
		"registry": func(c *imagepull.Config) { c.Hosts = nil },
		"not a":    func(c *imagepull.Config) { c.Hosts = []string{"https://" + host} },
		"10m0s":    func(c *imagepull.Config) { c.Token.TTL = time.Minute },
		"colon":    func(c *imagepull.Config) { c.Token.Username = "a:b" },
		"Bad Name": func(c *imagepull.Config) { c.Namespaces = []string{"Bad Name"} },
		"both listed and selected": func(c *imagepull.Config) {
			c.Namespaces, c.Selection.Namespaces = []string{"a"}, labels.SelectorFromSet(labels.Set{"a": "b"})
		},
		"audiences":        func(c *imagepull.Config) { c.Hosts = []string{host, host + "=other"} },
		"format":           func(c *imagepull.Config) { c.Token.Format = "toml" },
		"must be positive": func(c *imagepull.Config) { c.RefreshQPS = 0 },
	} {
		c := good()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// TestEveryMetricAndEventIsExplained keeps the tables of the page complete.
func TestEveryMetricAndEventIsExplained(t *testing.T) {
	t.Parallel()
	page := docs.Page(t, "guides/image-pull-secrets.md")
	known := docs.Matches(t, `"(ocm_imagepull_\w+)"`, "pkg/imagepull")
	known = append(known, names.ReasonPullSecretContended, names.ReasonPullSecretNameTaken, names.ReasonPullSecretFailed, registry.ReasonNoHosts, registry.ReasonHostsInvalid)
	known = append(known, docs.Matches(t, `Reason = "(\w+)"`, "pkg/credential")...)
	for _, name := range known {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not explain %s", name)
		}
	}
	if len(known) < 15 {
		t.Errorf("only %d names were found", len(known))
	}
	docs.CheckAlerts(t, "reference/alerts/image-pull-secrets.yaml", append(known, "ocm_imagepull_token_request_duration_seconds_bucket"), "summary", "runbook")
}

// TestRequestedRefresh: a request is met by a new token in the same Secret, and once.
func TestRequestedRefresh(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t)
	app := e.account(t, "app")
	e.settled(t, []string{host}, app)
	before := e.secret(t.Context(), t, app)
	issued := content.Of(before).Tokens[0].Issued
	await.Condition(t, patience, "the second after its issue", func(context.Context) (bool, error) { return clock.RealClock{}.Now().Unix() > issued, nil })
	e.clock.Step(2 * time.Minute) // One token a minute is the most.
	if err := imagepull.RequestRefresh(t.Context(), e.admin, client.ObjectKeyFromObject(before), time.Unix(issued, 0)); err != nil {
		t.Fatal(err)
	}
	await.Completion(t, patience, func(ctx context.Context) string {
		now := e.secret(ctx, t, app)
		if now.UID != before.UID {
			t.Fatal("the Secret was recreated")
		}
		found, err := inventory.Get(ctx, e.admin, client.ObjectKeyFromObject(now), e.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		if found.State != inventory.StateValid || content.Of(now).Tokens[0].Issued <= issued {
			return "the token is " + found.State
		}
		return ""
	})
}
