package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestReusedName keeps the hub kubeconfig of a cluster's agent, detaches the
// cluster and joins another one under the same name: what was kept is worthless.
func TestReusedName(t *testing.T) {
	const name = "reused"
	fleet.needs(t, "cluster3", "cluster4")
	hub := fleet.client(t, "hub")
	join := func(cluster string) {
		t.Helper()
		fleet.leave(t, cluster, name)
		fleet.must(t, "join", "--hub-context", "hub", "--context", cluster, "--cluster-name", name, "--wait")
		awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)
	}
	join("cluster3")
	first := keepAgent(t, "cluster3")
	first.works(t, name)
	fleet.must(t, "unjoin", name, "--yes", "--context", "cluster3", "--hub-context", "hub", "--wait")
	join("cluster4")
	second := keepAgent(t, "cluster4")

	first.isWorthless(t, name)
	second.works(t, name)
}

// keptAgent is what somebody has who keeps an agent's hub kubeconfig.
type keptAgent struct {
	user   string
	groups []string
	// certified has the agent's certificate, which expires soon in this suite;
	// identity has its user and groups for ever.
	certified, identity client.Client
}

func keepAgent(t *testing.T, cluster string) keptAgent {
	t.Helper()
	config := fleet.agentConfig(t, cluster)
	certs, err := pemutil.ParseCertificates(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	k := keptAgent{user: certs[0].Subject.CommonName, groups: certs[0].Subject.Organization}
	impersonated := fleet.config(t, "hub")
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: k.user, Groups: append([]string{"system:authenticated"}, k.groups...)}
	k.certified, k.identity = client.NewDryRunClient(newClient(t, config)), client.NewDryRunClient(newClient(t, impersonated))
	return k
}

// works waits until the agent may do all that an agent does, also with its kubeconfig unless
// that has expired.
func (k keptAgent) works(t *testing.T, cluster string) {
	t.Helper()
	for what, do := range k.deeds(t, cluster) {
		eventually(t, k.user+" may "+what, func(ctx context.Context) error { return do(ctx, k.identity) })
		if err := do(t.Context(), k.certified); err != nil && !apierrors.IsUnauthorized(err) {
			t.Errorf("with its kubeconfig, %s may not %s: %v", k.user, what, err)
		}
	}
}

// isWorthless waits until the agent may do nothing, and shows that its kubeconfig is of no use.
func (k keptAgent) isWorthless(t *testing.T, cluster string) {
	t.Helper()
	for what, do := range k.deeds(t, cluster) {
		eventually(t, k.user+" may not "+what, func(ctx context.Context) error { return wantForbidden(do(ctx, k.identity)) })
		if err := do(t.Context(), k.certified); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			t.Errorf("with its kubeconfig, %s may %s: %v", k.user, what, err)
		}
	}
}

// deeds are what an agent does on the hub, tried without effect.
func (k keptAgent) deeds(t *testing.T, cluster string) map[string]func(context.Context, client.Client) error {
	t.Helper()
	merge := func(body string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(body)) }
	return map[string]func(context.Context, client.Client) error{
		"read its ManagedCluster": func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
		},
		"write its status": func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, merge(`{"status":{"version":{"kubernetes":"v0"}}}`))
		},
		"renew its lease": func(ctx context.Context, c client.Client) error {
			lease := &coordinationv1.Lease{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}, lease); err != nil {
				return err
			}
			err := c.Update(ctx, lease)
			if apierrors.IsConflict(err) {
				return nil // The agent renews it at the same time.
			}
			return err
		},
		"list its ManifestWorks": func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace(cluster))
		},
		"take back the keys that it published": func(ctx context.Context, c client.Client) error {
			keys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.IssuerConfigMap}}
			return client.IgnoreNotFound(c.Delete(ctx, keys)) // It publishes none here.
		},
		"renew its certificate": func(ctx context.Context, c client.Client) error {
			renewal := request{
				cluster: cluster, commonName: k.user, organizations: k.groups,
				usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
			}.object(t)
			renewal.GenerateName = cluster + "-"
			return c.Create(ctx, renewal)
		},
	}
}

func wantForbidden(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err == nil:
		return errors.New("it did")
	}
	return fmt.Errorf("not for want of a right: %w", err)
}
