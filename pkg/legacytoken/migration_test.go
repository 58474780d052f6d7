package legacytoken_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
)

const audience = "registry"

// controllers runs the pull secret controllers for the namespace.
func (e *env) controllers(t *testing.T, hosts ...string) {
	t.Helper()
	e.run(t, imagepull.Config{
		Hosts: hosts, Audience: audience,
		Token: token.Spec{TTL: time.Hour, Username: "serviceaccount", Format: imagepull.Formats()[0]},
	})
}

// openShiftControllers runs them with the preset of OpenShift.
func (e *env) openShiftControllers(t *testing.T, hosts ...string) {
	t.Helper()
	e.run(t, imagepull.Config{
		Preset: imagepull.OpenShift, Hosts: hosts, Namespaces: []string{e.namespace},
		Token: token.Spec{TTL: time.Hour, Username: "<token>", Format: imagepull.DockerCfg},
	})
}

func (e *env) run(t *testing.T, config imagepull.Config) {
	t.Helper()
	config.Attach, config.RefreshQPS, config.Clock, config.Metrics = true, 1000, clock.RealClock{}, prometheus.NewRegistry()
	options := imagepull.CacheOptions(config)
	options.DefaultNamespaces = map[string]cache.Config{e.namespace: {}}
	controllers.Start(t, plane.Config(t), manager.Options{Cache: options}, func(ctx context.Context, mgr manager.Manager) error {
		return imagepull.Setup(ctx, mgr, config)
	})
}

// pullSecret makes a pull secret whose password is a token.
func (e *env) pullSecret(t *testing.T, name, token string) *corev1.Secret {
	t.Helper()
	secret := generic(t, map[string]string{host: token})
	secret.ObjectMeta = e.meta(name)
	e.create(t, secret)
	return secret
}

// fed is the pull secret that the token "one" feeds, with the token.
func (e *env) fed(t *testing.T) (*legacytoken.Token, legacytoken.PullSecret) {
	t.Helper()
	found := e.find(t)
	if len(found.PullSecrets) != 1 {
		t.Fatalf("it feeds %v", found.PullSecrets)
	}
	return found, found.PullSecrets[0]
}

func (e *env) migration(t *testing.T, hosts ...string) *legacytoken.Migration {
	t.Helper()
	return &legacytoken.Migration{Client: e.here(t), Hosts: hosts, Patience: patience}
}

// password is the one for the host in a pull secret of either type.
func password(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	data := secret.Data[corev1.DockerConfigKey]
	if secret.Type == corev1.SecretTypeDockerConfigJson {
		data = secret.Data[corev1.DockerConfigJsonKey]
	}
	var config struct {
		Auths map[string]struct{ Auth string }
	}
	if secret.Type == corev1.SecretTypeDockercfg {
		data = []byte(`{"auths":` + string(data) + `}`)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	decoded, err := base64.StdEncoding.DecodeString(config.Auths[host].Auth)
	if err != nil {
		t.Fatal(err)
	}
	_, password, _ := strings.Cut(string(decoded), ":")
	return password
}

// TestMigration: the controller replaces the token in place; the old one still
// works; what it keeps then is proof for the next pull secret.
func TestMigration(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	old := e.legacy(t, "one")
	before := e.pullSecret(t, "pull", old)
	e.controllers(t, host)
	from, p := e.fed(t)
	if plan, err := e.migration(t).Plan(t.Context(), from, p); err != nil || plan.Action != legacytoken.ActionReject || !strings.Contains(plan.Reason, "whether the controller stores tokens for "+host) {
		t.Fatalf("before it is known for which hosts the controller writes: %+v, %v", plan, err)
	}
	if err := e.migration(t, host).Migrate(t.Context(), from, p); err != nil {
		t.Fatal(err)
	}
	after := &corev1.Secret{ObjectMeta: e.meta("pull")}
	e.get(t, after)
	if after.UID != before.UID {
		t.Error("the pull secret was made anew")
	}
	e.accepted(t, password(t, after), true, audience)
	e.accepted(t, old, true)
	if now := e.find(t); len(now.PullSecrets) > 0 {
		t.Errorf("it still feeds %v", now.PullSecrets)
	}
	if plan, err := e.migration(t).Plan(t.Context(), from, p); err != nil || plan.Action != legacytoken.ActionNone {
		t.Errorf("again: %+v, %v", plan, err)
	}
	e.pullSecret(t, "second", old)
	from, p = e.fed(t)
	if err := e.migration(t).Migrate(t.Context(), from, p); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestMigrationOfOpenShift: what OpenShift made for its registry gets a bound token
// in place, and does not go with the legacy token any more.
func TestMigrationOfOpenShift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	before := e.legacyOfOpenShift(t)
	old := password(t, before)
	e.openShiftControllers(t, host)
	await.Condition(t, patience, "the migration", func(ctx context.Context) (bool, error) {
		from, p := e.fed(t)
		err := e.migration(t, host).Migrate(ctx, from, p)
		if errors.Is(err, legacytoken.ErrChanged) { // The controllers have just marked it.
			return false, nil
		}
		return err == nil, err
	})
	after, account := &corev1.Secret{ObjectMeta: e.meta(before.Name)}, e.account.DeepCopy()
	e.get(t, after)
	e.get(t, account)
	e.accepted(t, password(t, after), true)
	e.accepted(t, old, true)
	if after.UID != before.UID || len(after.OwnerReferences) != 1 || after.OwnerReferences[0].UID != account.UID || slices.Contains(after.Finalizers, names.OpenShiftLegacyToken) {
		t.Errorf("the pull secret is %+v", after.ObjectMeta)
	}
	if account.Annotations[names.AnnotationOpenShiftPullSecret] != before.Name {
		t.Errorf("the ServiceAccount is %+v", account.ObjectMeta)
	}
	if now := e.find(t); len(now.PullSecrets) > 0 {
		t.Errorf("it still feeds %v", now.PullSecrets)
	}
}

// TestMigrationAfterAKill: a pull secret that was handed over when the command was
// killed still works, and the next run goes on.
func TestMigrationAfterAKill(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	old := e.legacy(t, "one")
	e.pullSecret(t, "pull", old)
	from, p := e.fed(t)
	if err := e.migration(t, host).Begin(t.Context(), from, p); err != nil {
		t.Fatal(err)
	}
	left := &corev1.Secret{ObjectMeta: e.meta("pull")}
	e.get(t, left)
	if password(t, left) != old {
		t.Error("the handover changed the data")
	}
	from, p = e.fed(t)
	e.controllers(t, host)
	// The controller may replace it before the command looks again.
	if err := e.migration(t, host).Migrate(t.Context(), from, p); err != nil && !errors.Is(err, legacytoken.ErrChanged) {
		t.Fatal(err)
	}
	e.get(t, left)
	e.accepted(t, password(t, left), true, audience)
}

// TestNoController: where no controller answers, everything is as it was before.
func TestNoController(t *testing.T) {
	t.Parallel()
	unanswered := func(err error) bool {
		_, ok := errors.AsType[*legacytoken.NoAnswerError](err)
		return ok
	}
	for name, made := range map[string]func(*testing.T, *env){
		"a user's":    func(t *testing.T, e *env) { t.Helper(); e.pullSecret(t, "pull", e.legacy(t, "one")) },
		"OpenShift's": func(t *testing.T, e *env) { t.Helper(); e.legacyOfOpenShift(t) },
		"OpenShift's with its ServiceAccount's annotation": func(t *testing.T, e *env) {
			t.Helper()
			name := e.legacyOfOpenShift(t).Name
			e.merge(t, e.account, `{"metadata":{"annotations":{"`+names.AnnotationOpenShiftPullSecret+`":"`+name+`"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			made(t, e)
			m := e.migration(t, host)
			m.Patience = time.Second
			e.expectUndone(t, m, unanswered)
		})
	}
}

// legacyOfOpenShift makes what OpenShift makes for a ServiceAccount.
func (e *env) legacyOfOpenShift(t *testing.T) *corev1.Secret {
	t.Helper()
	token := e.legacy(t, "one")
	source := &corev1.Secret{ObjectMeta: e.meta("one")}
	e.get(t, source)
	secret := openShift(t, map[string]string{host: token})
	secret.Namespace = e.namespace
	secret.Annotations[names.AnnotationOpenShiftTokenSecret] = "one"
	secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey] = e.account.Name, string(e.account.UID)
	secret.OwnerReferences[0].Name, secret.OwnerReferences[0].UID = "one", source.UID
	e.create(t, secret)
	return secret
}

// expectUndone migrates, which must fail in a way and change nothing.
func (e *env) expectUndone(t *testing.T, m *legacytoken.Migration, fails func(error) bool) {
	t.Helper()
	from, p := e.fed(t)
	secret, account := &corev1.Secret{ObjectMeta: e.meta(p.Name)}, e.account.DeepCopy()
	e.get(t, secret)
	e.get(t, account)
	if plan, err := m.Plan(t.Context(), from, p); err != nil || plan.Action != legacytoken.ActionApply {
		t.Fatalf("planned: %+v, %v", plan, err)
	}
	if err := m.Migrate(t.Context(), from, p); !fails(err) {
		t.Fatalf("the migration: %v", err)
	}
	for before, after := range map[client.Object]client.Object{
		secret: &corev1.Secret{ObjectMeta: e.meta(p.Name)}, account: &corev1.ServiceAccount{ObjectMeta: e.meta(account.Name)},
	} {
		e.get(t, after)
		for _, o := range []client.Object{before, after} {
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
	}
}

// TestHostsThatTheControllerDoesNotWrite: a credential that would be lost although
// the user said otherwise comes back.
func TestHostsThatTheControllerDoesNotWrite(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.pullSecret(t, "pull", e.legacy(t, "one"))
	e.controllers(t, "elsewhere.example.com")
	e.expectUndone(t, e.migration(t, host), func(err error) bool {
		lost, ok := errors.AsType[*legacytoken.HostsLostError](err)
		return ok && len(lost.Hosts) == 1 && lost.Hosts[0] == host
	})
}

// TestInterruptedMigration: a migration that is interrupted while it waits changes
// nothing either.
func TestInterruptedMigration(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.pullSecret(t, "pull", e.legacy(t, "one"))
	from, p := e.fed(t)
	ctx, interrupt := context.WithCancel(t.Context())
	m := e.migration(t, host)
	direct, err := client.NewWithWatch(plane.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Client = interceptor.NewClient(direct, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			defer interrupt()
			return c.Patch(ctx, o, patch, options...)
		},
	})
	if err := m.Migrate(ctx, from, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("the migration: %v", err)
	}
	left := &corev1.Secret{ObjectMeta: e.meta("pull")}
	e.get(t, left)
	if len(left.Labels) > 0 || len(left.OwnerReferences) > 0 {
		t.Errorf("left handed over: %+v", left.ObjectMeta)
	}
}

// TestRefusedMigration: what is gone is not handed over.
func TestRefusedMigration(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.pullSecret(t, "pull", e.legacy(t, "one"))
	from, p := e.fed(t)
	other := legacytoken.WithAccountUID(*from, "another")
	if plan, err := e.migration(t, host).Plan(t.Context(), other, p); err != nil || plan.Action != legacytoken.ActionReject || !strings.Contains(plan.Reason, "ServiceAccount app is gone") {
		t.Errorf("of a recreated ServiceAccount: %+v, %v", plan, err)
	}
	e.remove(t, "pull")
	if plan, err := e.migration(t, host).Plan(t.Context(), from, p); err != nil || plan.Action != legacytoken.ActionNone {
		t.Errorf("of a pull secret that is gone: %+v, %v", plan, err)
	}
}

// TestManagedHosts: what the pull secrets with bound tokens of most namespaces have in
// common is what the controller writes; others say nothing about it, and no user of one
// namespace keeps those of others from a migration.
func TestManagedHosts(t *testing.T) {
	t.Parallel()
	const other, third = "s.example.com", "t.example.com"
	kept := func(namespace string, uid types.UID, boundTo string, hosts ...string) *corev1.Secret {
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"kubernetes.io":{"secret":{"uid":"` + boundTo + `"}}}`))
		passwords := map[string]string{}
		for _, host := range hosts {
			passwords[host] = "eyJhbGciOiJSUzI1NiJ9." + claims + ".c2ln"
		}
		secret := generic(t, passwords)
		secret.Namespace, secret.Name, secret.UID = namespace, string(uid), uid
		secret.Labels = map[string]string{names.LabelManagedBy: names.ManagedByImagePull}
		return secret
	}
	unmarked := kept("b", "u5", "u5", third)
	unmarked.Labels = nil
	for name, tc := range map[string]struct {
		secrets []client.Object
		want    []string
	}{
		"none":                      {},
		"one":                       {[]client.Object{kept("a", "u1", "u1", host, other)}, []string{host, other}},
		"all have it":               {[]client.Object{kept("a", "u1", "u1", host, other), kept("b", "u2", "u2", other)}, []string{other}},
		"none in common":            {[]client.Object{kept("a", "u1", "u1", host), kept("b", "u2", "u2", other), kept("c", "u3", "u3", third)}, nil},
		"one that a user made":      {[]client.Object{kept("a", "u1", "u1", host), kept("b", "u2", "u2", other), kept("c", "u3", "u3", host)}, []string{host}},
		"many in one namespace":     {[]client.Object{kept("a", "u1", "u1", host), kept("b", "u2", "u2", other), kept("b", "u3", "u3", other), kept("c", "u6", "u6", host)}, []string{host}},
		"a token of another Secret": {[]client.Object{kept("a", "u1", "u1", host), kept("b", "u4", "u1", other)}, []string{host}},
		"no pull secret of ours":    {[]client.Object{kept("a", "u1", "u1", host), unmarked}, []string{host}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &legacytoken.Migration{Client: fake.NewClientBuilder().WithObjects(tc.secrets...).Build()}
			got, err := m.ManagedHosts(t.Context(), generic(t, nil))
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%v, %v; want %v", got, err, tc.want)
			}
		})
	}
}
