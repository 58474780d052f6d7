package inventory_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// now is the time in these tests.
var now = time.Unix(1_800_000_000, 0)

// env is a namespace.
type env struct {
	client.Client

	namespace string
}

func newEnv(t *testing.T) env {
	t.Helper()
	e := env{Client: plane.Client(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inventory-"}}
	e.create(t, namespace)
	e.namespace = namespace.Name
	return e
}

func (e env) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := e.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// account makes a ServiceAccount and its pull secret, whose data follows from both
// UIDs.
func (e env) account(t *testing.T, name string, data func(account, secret types.UID) string) *corev1.Secret {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	e.create(t, account)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: names.PullSecret(name, account.UID),
			Labels:          map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
			Annotations:     map[string]string{names.AnnotationPullSecretAccount: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: name, UID: account.UID}},
		},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	}
	e.create(t, secret)
	secret.Data[corev1.DockerConfigJsonKey] = []byte(data(account.UID, secret.UID))
	if err := e.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// config is data with a token that was issued before now and ends after it.
func config(account, secret types.UID, before, after time.Duration) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"aud":["registry"],"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q},"secret":{"uid":%q}}}`,
		now.Add(-before).Unix(), now.Add(after).Unix(), account, secret)
	token := encode([]byte(`{"alg":"RS256","kid":"key-1"}`)) + "." + encode([]byte(claims)) + ".c2ln"
	return fmt.Sprintf(`{"auths":{"registry.example.com":{"auth":%q}}}`, base64.StdEncoding.EncodeToString([]byte("user:"+token)))
}

func (e env) read(t *testing.T) *inventory.Inventory {
	t.Helper()
	found, err := inventory.Read(t.Context(), e, e.namespace, inventory.AnyPreset, now)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStates: a pull secret is in the state for which the controller replaces it.
func TestStates(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	lasting := func(before, after time.Duration) func(account, secret types.UID) string {
		return func(account, secret types.UID) string { return config(account, secret, before, after) }
	}
	data := map[string]func(account, secret types.UID) string{
		"Valid":         lasting(time.Hour, 11*time.Hour),
		"NearExpiry":    lasting(11*time.Hour, time.Hour),
		"Expired":       lasting(12*time.Hour, -time.Second),
		"Missing":       func(_, _ types.UID) string { return `{"auths":{}}` },
		"Malformed":     func(_, _ types.UID) string { return `{"auths":{"registry.example.com":{"auth":"eA=="}}}` },
		"WrongIdentity": func(_, secret types.UID) string { return config("other", secret, time.Hour, 11*time.Hour) },
	}
	secrets := map[string]string{}
	for state, data := range data {
		secrets[e.account(t, "app-"+strings.ToLower(state), data).Name] = state
	}
	usable := []string{"Valid", "NearExpiry"}
	found := e.read(t).Secrets
	if len(found) != len(data) {
		t.Fatalf("found %+v", found)
	}
	for _, p := range found {
		state := secrets[p.Name]
		if p.State != state || p.Usable != slices.Contains(usable, state) || (p.Message == "") != (state == "Valid") {
			t.Errorf("%s: %+v", state, p)
		}
		if state == "Valid" && (p.Hosts[0] != "registry.example.com" || p.Audiences[0] != "registry" || p.KeyIDs[0] != "key-1" || p.Usernames[0] != "user" || !p.Expires.Equal(now.Add(11*time.Hour))) {
			t.Errorf("%+v", p)
		}
	}
}

// TestLegacy: a pull secret that OpenShift made from a legacy token is one, unless
// its ServiceAccount has one with a bound token.
func TestLegacy(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	bound := e.account(t, "both", func(account, secret types.UID) string { return config(account, secret, time.Hour, 11*time.Hour) })
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: "old",
	}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "old-dockercfg"}}})
	for _, name := range []string{"old", "both"} {
		e.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name + "-dockercfg", Annotations: map[string]string{
				corev1.ServiceAccountNameKey: name, names.AnnotationOpenShiftTokenSecret: name + "-token",
			}},
			Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"registry.example.com":{"auth":"dTpw"}}`)},
		})
	}
	found := e.read(t)
	if len(found.Secrets) != 3 {
		t.Fatalf("found %+v", found.Secrets)
	}
	old := found.Of(types.NamespacedName{Namespace: e.namespace, Name: "old"})
	if old == nil || old.State != inventory.StateLegacy || !old.Usable || !old.Listed || len(old.Hosts) != 1 {
		t.Errorf("%+v", old)
	}
	if both := found.Of(types.NamespacedName{Namespace: e.namespace, Name: "both"}); both == nil || both.Name != bound.Name {
		t.Errorf("%+v", both)
	}
}

// TestPods: those that name a pull secret are counted, and those that cannot pull
// because they are older than its entry are found.
func TestPods(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	secret := e.account(t, "app", func(account, secret types.UID) string { return config(account, secret, time.Hour, 11*time.Hour) })
	pod := func(name, reason string, entries ...string) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
			Spec: corev1.PodSpec{
				ServiceAccountName: "app", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "other"}},
				Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app"}},
			},
		}
		for _, entry := range entries {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: entry})
		}
		e.create(t, p)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		if err := e.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	pod("old", "ImagePullBackOff")
	pod("starting", "ContainerCreating")
	pod("refused", "ImagePullBackOff", secret.Name)
	if late := e.read(t).Late; len(late) != 0 {
		t.Errorf("before the pull secret is listed, %v are late", late)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "app"}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"imagePullSecrets":[{"name":%q}]}`, secret.Name))
	if err := e.Patch(t.Context(), account, patch); err != nil {
		t.Fatal(err)
	}
	found := e.read(t)
	if len(found.Late) != 1 || found.Late[0].Name != "old" || len(found.Secrets) != 1 || !found.Secrets[0].Listed || found.Secrets[0].Pods != 1 {
		t.Errorf("%+v", found)
	}
}
