package pullsecrets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

func controller() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.ImagePullNamespace, Name: names.ImagePullDeployment}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller", Args: []string{"--audience=registry"}}}
	d.Status.Replicas, d.Status.AvailableReplicas = 1, 1
	return d
}

func lease(age time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.ImagePullNamespace, Name: names.ImagePullLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("pod-1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: diagnosis.Now().Add(-age)},
		},
	}
}

// account is a ServiceAccount in a namespace that the configuration names.
func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
}

// read accepts all arguments but those of a broken controller.
func read(args []string) (imagepull.Config, error) {
	if strings.Contains(strings.Join(args, " "), "--broken") {
		return imagepull.Config{}, errors.New("broken")
	}
	return imagepull.Config{Audience: strings.TrimPrefix(args[0], "--audience="), Namespaces: []string{"shop"}, Attach: true}, nil
}

func TestSteps(t *testing.T) {
	t.Parallel()
	const installed, leads, audience, selected, exists = "the controller is installed and ready", "one Pod of the controller leads",
		"tokens are for the registries only", "ServiceAccounts are selected", "each of them has a pull secret"
	broken, apiServer := controller(), controller()
	broken.Spec.Template.Spec.Containers[0].Args = []string{"--broken"}
	apiServer.Spec.Template.Spec.Containers[0].Args = []string{"--audience="}
	for name, tc := range map[string]struct {
		objects []client.Object
		check   string
		want    finding.Status
		message string
	}{
		"no controller":        {nil, installed, finding.Failed, "is not installed"},
		"broken arguments":     {[]client.Object{broken}, installed, finding.Failed, "cannot be used: broken"},
		"a controller":         {[]client.Object{controller()}, installed, finding.OK, "1 of 1 Pods"},
		"no lease":             {[]client.Object{controller()}, leads, finding.Failed, "no Pod leads"},
		"an expired lease":     {[]client.Object{controller(), lease(time.Minute)}, leads, finding.Failed, "the lease of pod-1 expired"},
		"a leader":             {[]client.Object{controller(), lease(time.Second)}, leads, finding.OK, "pod-1"},
		"an audience":          {[]client.Object{controller()}, audience, finding.OK, "registry"},
		"no audience":          {[]client.Object{apiServer}, audience, finding.Warning, "tokens of the API server"},
		"no ServiceAccount":    {[]client.Object{controller()}, selected, finding.Warning, "no ServiceAccount is selected"},
		"a namespace is gone":  {[]client.Object{controller(), account()}, selected, finding.Warning, "no ServiceAccount is selected"},
		"a ServiceAccount":     {[]client.Object{controller(), namespace(), account()}, selected, finding.OK, "1"},
		"without pull secrets": {[]client.Object{controller(), namespace(), account()}, exists, finding.Failed, "without: shop/app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := diagnosis.Outcome(t, pullsecrets.Steps(diagnosis.Scope(t, tc.objects...), read), tc.check)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
