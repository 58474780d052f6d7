package legacy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/legacy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestPairIsMarkedOnce: the token gets a label, the pull secret its binding and a
// finalizer; another process writes nothing, and Secrets of others stay as they are.
func TestPairIsMarkedOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token, pull := e.pair(t, "app")
	data := string(pull.Data[corev1.DockerConfigKey])
	manual := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "manual", Annotations: map[string]string{corev1.ServiceAccountNameKey: "app"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "theirs"}, Type: corev1.SecretTypeDockercfg,
		Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
	}
	installation.Create(t, e.Client, manual, theirs)
	stop := e.start(t)
	e.marked(t, token, pull)
	if string(pull.Data[corev1.DockerConfigKey]) != data {
		t.Error("the data was changed")
	}
	stop()
	e.start(t)
	markerToken, marker := e.pair(t, "marker")
	e.marked(t, markerToken, marker)
	if writes := e.writes.About("/secrets/app-"); len(writes) != 0 {
		t.Errorf("another process writes %v", writes)
	}
	e.stays(t, theirs)
	if writes := e.writes.About("/secrets/manual"); len(writes) != 0 {
		t.Errorf("it writes %v", writes)
	}
}

// TestHalfOfAPair: whichever half is deleted, also while no controller runs, the
// other goes too, whichever controller put the finalizer there.
func TestHalfOfAPair(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token, pull := e.pair(t, "app")
	token2, pull2 := e.pair(t, "other")
	token3, pull3 := e.pair(t, "away")
	finalizer := []byte(`{"metadata":{"finalizers":["` + names.OpenShiftLegacyToken + `"]}}`)
	if err := e.Patch(t.Context(), pull.DeepCopy(), client.RawPatch(types.MergePatchType, finalizer), client.FieldOwner("another-controller")); err != nil {
		t.Fatal(err)
	}
	stop := e.start(t)
	e.marked(t, token, pull)
	e.marked(t, token2, pull2)
	e.marked(t, token3, pull3)
	e.remove(t, pull)
	e.gone(t, pull, token)
	e.remove(t, token2)
	e.gone(t, token2, pull2)
	stop()
	e.remove(t, token3)
	e.start(t)
	e.gone(t, token3, pull3)
}

// TestForeignSecretIsNotDeleted: a pull secret that names a Secret which OpenShift's
// controllers did not make goes without it.
func TestForeignSecretIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, foreign := range map[string]*corev1.Secret{
		"a password": {Type: corev1.SecretTypeOpaque, StringData: map[string]string{"password": "1234567890"}},
		"a token made by hand": {
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "default"}}
			installation.Create(t, e.Client, account)
			token, pull := e.pair(t, "app")
			e.start(t)
			e.marked(t, token, pull)
			foreign.Namespace, foreign.Name = e.namespace, "foreign"
			installation.Create(t, e.Client, foreign)
			e.merge(t, pull, `{"metadata":{"annotations":{"`+names.AnnotationOpenShiftTokenSecret+`":"foreign"}}}`)
			e.remove(t, pull)
			e.gone(t, pull)
			if err := e.Get(t.Context(), client.ObjectKeyFromObject(foreign), &corev1.Secret{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHandedOverPullSecretIsLetGo: one that got a bound token outlives the legacy
// token, and its deletion waits for nothing.
func TestHandedOverPullSecretIsLetGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token, pull := e.pair(t, "app")
	e.start(t)
	e.marked(t, token, pull)
	e.merge(t, pull, `{"metadata":{"annotations":{"`+names.AnnotationOpenShiftBinding+`":"bound","`+names.AnnotationOpenShiftTokenSecret+`":null}}}`)
	e.remove(t, token)
	e.gone(t, token)
	marker, other := e.pair(t, "marker")
	e.marked(t, marker, other)
	if err := e.Get(t.Context(), client.ObjectKeyFromObject(pull), pull); err != nil {
		t.Fatal(err)
	}
	e.remove(t, pull)
	e.gone(t, pull)
}

// TestReleaseFreesEveryDeletion: without the controllers, whose deletions have waited
// so far end, those to come wait for nothing, and no token is deleted.
func TestReleaseFreesEveryDeletion(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token, pull := e.pair(t, "app")
	token2, pull2 := e.pair(t, "other")
	stop := e.start(t)
	e.marked(t, token, pull)
	e.marked(t, token2, pull2)
	stop()
	e.remove(t, pull)
	for _, want := range []int{2, 0} {
		held, err := legacy.Held(t.Context(), e.Client, client.InNamespace(e.namespace))
		if len(held) != want || err != nil {
			t.Errorf("%d are held, %v; want %d", len(held), err, want)
		}
		e.merge(t, pull2, `{"metadata":{"labels":{"changed":"meanwhile"}}}`)
		if err := legacy.Release(t.Context(), e.Client, held); err != nil {
			t.Error(err)
		}
	}
	e.gone(t, pull)
	e.remove(t, pull2)
	e.gone(t, pull2)
	e.stays(t, token)
	e.stays(t, token2)
}

func (e *env) remove(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	if err := e.Delete(t.Context(), secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
}

func (e *env) merge(t *testing.T, secret *corev1.Secret, patch string) {
	t.Helper()
	if err := e.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
