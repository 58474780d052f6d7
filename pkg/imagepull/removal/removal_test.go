package removal_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/removal"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// world is a cluster whose controller was stopped. Removal is for a whole cluster,
// so each test has its own.
type world struct {
	*controlplane.ControlPlane

	admin client.Client
}

func newWorld(t *testing.T) world {
	t.Helper()
	cp := controlplane.Lease(t)
	return world{cp, cp.Client(t)}
}

func (w world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// account makes a ServiceAccount with a pull secret, which is listed among those
// of others.
func (w world) account(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	w.create(t, account)
	secret := pullSecret(names.PullSecret(name, account.UID))
	secret.Labels = map[string]string{names.LabelManagedBy: names.ManagedByImagePull}
	secret.Annotations = map[string]string{names.AnnotationPullSecretAccount: name}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: name, UID: account.UID}}
	w.create(t, secret)
	account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "first"}, {Name: secret.Name}, {Name: "last"}}
	if err := w.admin.Update(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return account
}

func pullSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}
}

// lists returns what a ServiceAccount lists now.
func (w world) lists(t *testing.T, account *corev1.ServiceAccount) []string {
	t.Helper()
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range account.ImagePullSecrets {
		list = append(list, entry.Name)
	}
	return list
}

func (w world) secrets(t *testing.T) []string {
	t.Helper()
	var found corev1.SecretList
	if err := w.admin.List(t.Context(), &found, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range found.Items {
		list = append(list, found.Items[i].Name)
	}
	return list
}

// remove is what is done to remove everything.
func remove(t *testing.T, c client.Client) error {
	t.Helper()
	left, err := removal.Find(t.Context(), c)
	if err != nil {
		return err
	}
	if err := left.Detach(t.Context(), c); err != nil {
		return err
	}
	return left.Delete(t.Context(), c)
}

// TestNothingIsLeftAfterAKillAnywhere: a removal that is killed after any of its
// writes is finished by the next one; what is not the controller's stays.
func TestNothingIsLeftAfterAKillAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := pullSecret("theirs")
	theirs.Labels = map[string]string{names.LabelManagedBy: names.ManagedByImagePull} // The label alone is not enough.
	w.create(t, theirs)
	every := func(string, string) bool { return true }
	for n := 1; ; n++ {
		accounts := []*corev1.ServiceAccount{w.account(t, "a"), w.account(t, "b")}
		writes := interrupt.After(n, "", every)
		config := w.Config(t)
		config.Wrap(writes.Wrap)
		killed := remove(t, w.ClientFor(t, config))
		if killed != nil && !errors.Is(killed, interrupt.ErrCut) {
			t.Fatal(killed)
		}
		if err := remove(t, w.admin); err != nil {
			t.Fatal(err)
		}
		for _, account := range accounts {
			if list := w.lists(t, account); !slices.Equal(list, []string{"first", "last"}) {
				t.Errorf("killed after %d writes: %s lists %v", n, account.Name, list)
			}
			if err := w.admin.Delete(t.Context(), account); err != nil {
				t.Fatal(err)
			}
		}
		if found := w.secrets(t); !slices.Equal(found, []string{"theirs"}) {
			t.Errorf("killed after %d writes: %v are left", n, found)
		}
		if killed == nil {
			if n != 5 {
				t.Errorf("two accounts took %d writes, want 4", n-1)
			}
			return
		}
	}
}

// TestPodsThatNameAPullSecretAreFound, and those that have ended are not.
func TestPodsThatNameAPullSecretAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	account := w.account(t, "app")
	pod := func(name string, secrets ...string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PodSpec{
				ServiceAccountName: account.Name, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "other"}},
				Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app"}},
			},
		}
		for _, secret := range secrets {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
		}
		return p
	}
	ours := names.PullSecret(account.Name, account.UID)
	ended := pod("ended", ours)
	w.create(t, pod("running", ours), pod("without"), ended)
	ended.Status.Phase = corev1.PodSucceeded
	if err := w.admin.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	left, err := removal.Find(t.Context(), w.admin)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Pods) != 1 || left.Pods[0].Name != "running" {
		t.Errorf("found %v", left.Pods)
	}
}

// TestAnEntryWithoutItsSecretGoes, but not that of a Secret which only has its name.
func TestAnEntryWithoutItsSecretGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone, taken := w.account(t, "gone"), w.account(t, "taken")
	for _, account := range []*corev1.ServiceAccount{gone, taken} {
		if err := w.admin.Delete(t.Context(), pullSecret(names.PullSecret(account.Name, account.UID))); err != nil {
			t.Fatal(err)
		}
	}
	w.create(t, pullSecret(names.PullSecret(taken.Name, taken.UID)))
	if err := remove(t, w.admin); err != nil {
		t.Fatal(err)
	}
	if list := w.lists(t, gone); len(list) != 2 {
		t.Errorf("gone lists %v", list)
	}
	if list := w.lists(t, taken); len(list) != 3 {
		t.Errorf("taken lists %v", list)
	}
	if found := w.secrets(t); len(found) != 1 {
		t.Errorf("%v are left", found)
	}
}

// TestPullSecretsWithOpenShiftsNames: those that the controller wrote can be removed,
// with the annotation that names them; those of OpenShift's own controllers stay.
func TestPullSecretsWithOpenShiftsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var accounts []*corev1.ServiceAccount
	for name, manager := range map[string]client.FieldOwner{"ours": "ocm.pullsecret.token", "theirs": "image-pull-secret-controller"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Annotations: map[string]string{names.AnnotationOpenShiftPullSecret: name + "-dockercfg"},
		}}
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "first"}, {Name: name + "-dockercfg"}}
		w.create(t, account)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name + "-dockercfg",
				Annotations: map[string]string{
					names.AnnotationOpenShiftAccount: name, names.AnnotationOpenShiftBinding: names.OpenShiftBound,
				},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: name, UID: account.UID}},
			},
			Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{}`)},
		}
		if err := w.admin.Create(t.Context(), secret, manager); err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, account)
	}
	if err := remove(t, w.admin); err != nil { // The names are OpenShift's, so it takes them over.
		t.Fatal(err)
	}
	if found := w.secrets(t); len(found) != 2 {
		t.Fatalf("%v are left", found)
	}
	for range 2 { // Once more after everything is done.
		left, err := removal.FindOpenShift(t.Context(), w.admin)
		if err == nil {
			err = errors.Join(left.Detach(t.Context(), w.admin), left.Delete(t.Context(), w.admin))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if found := w.secrets(t); !slices.Equal(found, []string{"theirs-dockercfg"}) {
		t.Errorf("%v are left", found)
	}
	for _, account := range accounts {
		ours := account.Name == "ours"
		list := w.lists(t, account)
		if _, points := account.Annotations[names.AnnotationOpenShiftPullSecret]; points == ours || (len(list) == 1) != ours {
			t.Errorf("%s lists %v and has the annotations %v", account.Name, list, account.Annotations)
		}
	}
}
