package refresh_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/refresh"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// pullSecret has no token yet.
func pullSecret(account string) *corev1.Secret {
	uid := types.UID("uid-of-" + account)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: names.PullSecret(account, uid),
			Labels:          map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
			Annotations:     map[string]string{names.AnnotationPullSecretAccount: account},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account, UID: uid}},
		},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}
}

// now is before every token expires.
var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(pullSecret("app"), pullSecret("web")).
		WithIndex(&corev1.Secret{}, "type", func(client.Object) []string { return []string{string(corev1.SecretTypeDockerConfigJson)} }).Build()
	app := types.NamespacedName{Namespace: "shop", Name: "app"}
	got, err := refresh.Of(t.Context(), c, []types.NamespacedName{app}, inventory.Generic, now)
	if err != nil || len(got) != 1 || got[0].ServiceAccount != "app" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = refresh.All(t.Context(), c, inventory.Generic, now); err != nil || len(got) != 2 {
		t.Errorf("all are %v, %v", got, err)
	}
	other := types.NamespacedName{Namespace: "shop", Name: "other"}
	_, err = refresh.Of(t.Context(), c, []types.NamespacedName{app, other}, inventory.Generic, now)
	if missing, ok := errors.AsType[*refresh.NoPullSecretError](err); !ok || missing.Account != other {
		t.Errorf("got %v", err)
	}
}

// TestAwait waits for a pull secret as long as it has no other token, and not for one that is
// gone.
func TestAwait(t *testing.T) {
	t.Parallel()
	stays := pullSecret("app")
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(stays).Build()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		chosen := []inventory.PullSecret{{Namespace: "shop", Name: "gone"}, {Namespace: "shop", Name: stays.Name}}
		var progress []int
		err := refresh.Await(ctx, c, clock.RealClock{}, chosen, func(done int) { progress = append(progress, done) })
		if !errors.Is(err, context.DeadlineExceeded) || len(progress) != 2 || progress[1] != 1 {
			t.Errorf("got %v after %v", err, progress)
		}
	})
}
