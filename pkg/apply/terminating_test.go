package apply_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// TestNothingIsAppliedToWhatGoes: an object that is being deleted is not
// written, whether it is as desired or not, because it will be gone; the error
// names what holds it.
func TestNothingIsAppliedToWhatGoes(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"same", "other"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			c, ns, sent := counted(t)
			applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
			config := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c", Finalizers: []string{"test.example/held"}},
				Data:       map[string]string{"a": "same"},
			}
			if _, err := applier.Apply(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), config.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			before := sent.writes.Load()
			config.Data["a"] = value
			_, err := applier.Apply(t.Context(), config)
			terminating, ok := errors.AsType[*apply.TerminatingError](err)
			if !ok || terminating.Object.Name != "c" || len(terminating.Finalizers) != 1 {
				t.Errorf("got %v, want that it is being deleted", err)
			}
			if got := sent.writes.Load(); got != before {
				t.Errorf("%d writes", got-before)
			}
			live := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), live); err != nil || live.Data["a"] != "same" {
				t.Errorf("it holds %v, %v", live.Data, err)
			}
		})
	}
}
