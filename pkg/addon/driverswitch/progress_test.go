package driverswitch_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/driverswitch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

var now = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// onHub is an add-on with a token that is valid for an hour.
func onHub(uses driver.AuthType) *addonv1beta1.ManagedClusterAddOn {
	obj := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1"}}
	config := &addonv1beta1.KubeClientConfig{Driver: string(uses)}
	config.Subject.User = "system:serviceaccount:c1:c1-a1-agent"
	obj.Status.Registrations = []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, KubeClient: config}}
	obj.Status.Conditions = []metav1.Condition{
		{Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue},
		{
			Type: names.ConditionAddOnTokenRefreshed, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
			Message: "token expires at " + now.Add(time.Hour).Format(time.RFC3339),
		},
	}
	return obj
}

func secret(key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.AddOnNamespace, Name: "a1-hub-kubeconfig"},
		Data:       map[string][]byte{key: []byte("value")},
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hub     *addonv1beta1.ManagedClusterAddOn
		managed []client.Object
		done    int
		pending []string
	}{
		"no add-on":               {},
		"the earlier driver":      {hub: onHub(driver.CSR), pending: []string{"waits for the agent to declare driver token"}},
		"no Secret":               {hub: onHub(driver.Token), pending: []string{"waits for Secret " + names.AddOnNamespace + "/a1-hub-kubeconfig"}},
		"a Secret without token":  {hub: onHub(driver.Token), managed: []client.Object{secret(names.KeyTLSCert)}, pending: []string{"waits for token in Secret " + names.AddOnNamespace + "/a1-hub-kubeconfig"}},
		"a Secret with the token": {hub: onHub(driver.Token), managed: []client.Object{secret(names.KeyToken)}, done: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := fake.NewClientBuilder().WithScheme(scheme.New())
			if tc.hub != nil {
				hub = hub.WithObjects(tc.hub)
			}
			c := driverswitch.Cluster{
				Name: "c1", Driver: driver.Token, Hub: hub.Build(),
				Managed: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.managed...).Build(),
			}
			done, pending, err := c.Progress(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range pending {
				got = append(got, r.Message)
			}
			if diff := cmp.Diff(tc.pending, got); diff != "" || done != tc.done {
				t.Errorf("%d are done, and pending (-want +got):\n%s", done, diff)
			}
		})
	}
}
