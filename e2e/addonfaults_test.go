package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestAddOnHubDown takes the hub's API server away from a refresh. It runs
// alone, because everybody else needs the hub.
func TestAddOnHubDown(t *testing.T) {
	f := newFaults(t, "e2e-hubdown")
	pods := agentPods(t, f.managed)
	f.survives(t, func() {
		killHub(t)
		f.deleteSecret(t, f.managed)
		if err := f.hub.Get(t.Context(), client.ObjectKeyFromObject(f.account), f.account.DeepCopy()); err == nil {
			t.Error("the hub was there when the refresh began")
		}
	})
	if diff := cmp.Diff(pods, agentPods(t, f.managed)); diff != "" {
		t.Errorf("the agent restarted (-before +after):\n%s", diff)
	}
}

// TestAddOnKilled kills -9 what takes part in a refresh, while it goes on.
func TestAddOnKilled(t *testing.T) {
	t.Parallel()
	f := newFaults(t, "e2e-killed")
	t.Run("addon-manager on the way", func(t *testing.T) {
		f.survives(t, func() {
			for _, obj := range f.infrastructure("cluster2", f.account.Name) {
				if err := f.hub.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			killPods(t, "hub", names.HubNamespace, "addon-manager")
		})
	})
	t.Run("agent before", func(t *testing.T) {
		f.survives(t, func() {
			killPods(t, "cluster2", names.AgentNamespace, "registration-agent")
			f.deleteSecret(t, f.managed)
		})
	})
	t.Run("agent on the way", func(t *testing.T) {
		f.survives(t, func() {
			f.deleteSecret(t, f.managed)
			killPods(t, "cluster2", names.AgentNamespace, "registration-agent")
		})
	})
	// Nothing is left that a kill wedged.
	f.survives(t, func() { f.deleteSecret(t, f.managed) })
}

// faults is an add-on of cluster2, with a token, to try faults on.
type faults struct {
	*addOn
	managed client.Client
	account *corev1.ServiceAccount
}

func newFaults(t *testing.T, name string) *faults {
	t.Helper()
	f := &faults{
		addOn:   installSample(t, name),
		managed: fleet.client(t, "cluster2"),
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: names.AddOnServiceAccount("cluster2", name)}},
	}
	f.add(t, "cluster2")
	f.awaitAgent(t, "cluster2")
	return f
}

// survives waits, after a fault that also took a credential away, until the
// add-on has a new one that is good, and sends heartbeats.
func (f *faults) survives(t *testing.T, fault func()) {
	t.Helper()
	before := f.awaitBeat(t, "cluster2", "token", beat{})
	old := f.awaitToken(t, "cluster2", "")
	fault()
	token := f.awaitToken(t, "cluster2", old.raw)
	eventually(t, "the token is of the ServiceAccount that is there", func(ctx context.Context) error {
		if err := f.hub.Get(ctx, client.ObjectKeyFromObject(f.account), f.account); err != nil {
			return err
		}
		secret, err := f.secret(ctx, f.managed)
		if err != nil {
			return err
		}
		token, err = parseToken(secret.Data[names.KeyToken])
		if err == nil && token.Kubernetes.ServiceAccount.UID != string(f.account.UID) {
			err = fmt.Errorf("it is of %s, want %s", token.Kubernetes.ServiceAccount.UID, f.account.UID)
		}
		return err
	})
	wantTokenConditions(t, f.addOn, token, f.account)
	f.awaitBeat(t, "cluster2", "token", before)
}

func (a *addOn) deleteSecret(t *testing.T, managed client.Client) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: addOnNamespace, Name: names.AddOnHubKubeconfigSecret(a.name)}}
	if err := managed.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// killPods sends SIGKILL to the processes of the Pods that have part in their
// name, which start again.
func killPods(t *testing.T, cluster, namespace, part string) {
	t.Helper()
	var pods corev1.PodList
	if err := fleet.client(t, cluster).List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return !strings.Contains(pod.Name, part) || len(pod.Status.ContainerStatuses) == 0
	})
	if len(pods.Items) == 0 {
		t.Fatalf("no Pod in %s is a %s", namespace, part)
	}
	for i := range pods.Items {
		killPod(t, cluster, &pods.Items[i])
	}
}

// twoAgents lets a second agent of a cluster run for a while that does not know
// of the first. Both look after the same add-ons, and come to rest.
func (a *addOn) twoAgents(t *testing.T, cluster string) {
	managed := fleet.client(t, cluster)
	var first appsv1.Deployment
	key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.RegistrationAgentDeployment(names.KlusterletName)}
	if err := managed.Get(t.Context(), key, &first); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "e2e-second"}
	second := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: "e2e-second"},
		Spec:       first.Spec,
	}
	second.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	second.Spec.Template.Labels = labels
	container := &second.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--leader-elect=false")
	if err := managed.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a second agent runs", func(ctx context.Context) error {
		if err := managed.Get(ctx, client.ObjectKeyFromObject(second), second); err != nil {
			return err
		}
		if second.Status.AvailableReplicas == 0 {
			return fmt.Errorf("status %+v", second.Status)
		}
		return nil
	})
	old := a.awaitToken(t, cluster, "")
	a.deleteSecret(t, managed)
	a.awaitToken(t, cluster, old.raw)
	a.awaitRest(t, cluster)
	if err := managed.Delete(t.Context(), second, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, managed, "the second agent ends", second)
	last, err := a.last(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitBeat(t, cluster, "token", last)
}

// awaitRest waits until nobody writes the add-on during ten heartbeats.
func (a *addOn) awaitRest(t *testing.T, cluster string) {
	t.Helper()
	version, since := "", 0
	eventually(t, "nobody writes the add-on any more", func(ctx context.Context) error {
		obj, err := a.get(ctx, cluster)
		if err != nil {
			return err
		}
		last, err := a.last(ctx, cluster)
		if err != nil {
			return err
		}
		if obj.ResourceVersion != version {
			version, since = obj.ResourceVersion, last.sequence
		}
		if last.sequence < since+10 {
			return fmt.Errorf("written %d heartbeats ago: %+v", last.sequence-since, obj.ManagedFields)
		}
		return nil
	})
}
