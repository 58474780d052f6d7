//go:build upgrade

package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// sample is the add-on in examples/heartbeat.
const sample = "heartbeat"

// installAddOn installs the hub part of the sample add-on.
func (f *fleet) installAddOn(t *testing.T) {
	t.Helper()
	manifest, err := os.ReadFile("../../examples/heartbeat/deploy/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(manifest), "--agent-interval=10s", "--agent-interval=500ms")
	hub := f.client(t, "hub")
	for document := range strings.SplitSeq(strings.TrimPrefix(text, "---\n"), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if err := hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// expectImage checks which release the Deployments of the hub or of an agent run.
func (f *fleet) expectImage(t *testing.T, where string, r release) {
	t.Helper()
	namespace := names.AgentNamespace
	if where == "hub" {
		namespace = names.HubNamespace
	}
	c := f.client(t, where)
	eventually(t, where+" runs "+r.image, func(ctx context.Context) error {
		var list appsv1.DeploymentList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, d := range list.Items {
			if image := d.Spec.Template.Spec.Containers[0].Image; image != r.image {
				return fmt.Errorf("%s runs %s", d.Name, image)
			}
			if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != s.UpdatedReplicas || s.ReadyReplicas != s.Replicas || s.Replicas == 0 {
				return fmt.Errorf("%s is not ready: %+v", d.Name, s)
			}
		}
		if len(list.Items) == 0 {
			return errors.New("nothing runs")
		}
		return nil
	})
}

// expectWorking checks all that a cluster does: its credential is renewed, its lease is
// renewed with it, works are applied, changed and removed, and its add-on gets another
// token and reports with it.
func (f *fleet) expectWorking(t *testing.T, cluster string) {
	t.Helper()
	hub, managed := f.client(t, "hub"), f.client(t, cluster)
	awaitRenewal(t, managed)
	awaitLease(t, hub, cluster)
	expectWork(t, hub, managed, cluster)
	expectAddOn(t, hub, managed, cluster)
}

// awaitRenewal waits until the agent has another certificate.
func awaitRenewal(t *testing.T, managed client.Client) {
	t.Helper()
	awaitOther(t, managed, client.ObjectKey{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}, names.KeyTLSCert)
}

// awaitOther waits until a Secret holds something else under a key than at first.
func awaitOther(t *testing.T, c client.Client, name client.ObjectKey, key string) {
	t.Helper()
	var first []byte
	eventually(t, "the Secret "+name.String()+" has another "+key, func(ctx context.Context) error {
		var secret corev1.Secret
		if err := c.Get(ctx, name, &secret); err != nil {
			return err
		}
		if first == nil {
			first = secret.Data[key]
		}
		if len(first) == 0 || bytes.Equal(first, secret.Data[key]) {
			return errors.New("not yet")
		}
		return nil
	})
}

// awaitLease waits until the agent renews the lease, and the hub sees it.
func awaitLease(t *testing.T, hub client.Client, cluster string) {
	t.Helper()
	// Five seconds are little to wait and enough for a busy machine.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"leaseDurationSeconds": 5}}`))
	if err := hub.Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, patch); err != nil {
		t.Fatal(err)
	}
	var first *metav1.MicroTime
	eventually(t, "the lease of "+cluster+" is renewed, and it is available", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		var mc clusterv1.ManagedCluster
		if err := errors.Join(
			hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}, &lease),
			hub.Get(ctx, client.ObjectKey{Name: cluster}, &mc),
		); err != nil {
			return err
		}
		if first == nil {
			first = lease.Spec.RenewTime
		}
		if !lease.Spec.RenewTime.After(first.Time) || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return fmt.Errorf("%v, %+v", lease.Spec.RenewTime, mc.Status.Conditions)
		}
		return nil
	})
}

// expectWork deploys a ConfigMap by a work, changes it, and removes it.
func expectWork(t *testing.T, hub, managed client.Client, cluster string) {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "upgrade"}}
	deployed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "upgrade"}}
	for _, value := range []string{"first", "second"} {
		manifest := fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "upgrade"}, "data": {"value": %q}}`, value)
		eventually(t, "the work of "+cluster+" is written", func(ctx context.Context) error {
			_, err := controllerutil.CreateOrUpdate(ctx, hub, work, func() error {
				work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: manifest}}}
				return nil
			})
			return err
		})
		eventually(t, "the work of "+cluster+" is applied", func(ctx context.Context) error {
			if err := errors.Join(hub.Get(ctx, client.ObjectKeyFromObject(work), work), managed.Get(ctx, client.ObjectKeyFromObject(deployed), deployed)); err != nil {
				return err
			}
			if deployed.Data["value"] != value || !apimeta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkApplied) {
				return fmt.Errorf("%v, %+v", deployed.Data, work.Status.Conditions)
			}
			return nil
		})
	}
	if err := hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the work of "+cluster+" is removed", func(ctx context.Context) error {
		return errors.Join(wantGone(ctx, hub, work), wantGone(ctx, managed, deployed))
	})
}

func wantGone(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err == nil {
		return fmt.Errorf("%T %s is there", obj, obj.GetName())
	}
	return client.IgnoreNotFound(err)
}

// expectAddOn makes the sample add-on one of the cluster's, unless it is, has its token
// be replaced, and waits for reports that come later.
func expectAddOn(t *testing.T, hub, managed client.Client, cluster string) {
	t.Helper()
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: sample}}
	if err := hub.Create(t.Context(), addOn); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "open-cluster-management-agent-addon", Name: names.AddOnHubKubeconfigSecret(sample)}}
	awaitBeats(t, hub, cluster)
	// The agent replaces a credential that is gone.
	if err := managed.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the add-on on "+cluster+" has another token", func(ctx context.Context) error {
		return managed.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	awaitBeats(t, hub, cluster)
}

// awaitBeats waits for some later reports of the sample add-on.
func awaitBeats(t *testing.T, hub client.Client, cluster string) {
	t.Helper()
	const some = 5
	first := -1
	eventually(t, "reports of the add-on on "+cluster, func(ctx context.Context) error {
		var report corev1.ConfigMap
		if err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: sample}, &report); err != nil {
			return err
		}
		sequence, err := strconv.Atoi(report.Data["sequence"])
		if first < 0 || sequence < first {
			first = sequence
		}
		if err == nil && sequence < first+some {
			err = fmt.Errorf("%d reports, %d before", sequence, first)
		}
		return err
	})
}
