package publish

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// FieldManager owns the published ConfigMap and the condition about it.
const FieldManager = "ocm.issuer.publish"

// requestTimeout bounds one request, so that a network that swallows it delays
// the next look and nothing else.
const requestTimeout = 15 * time.Second

// place is where a cluster's issuer is published.
type place struct {
	client client.Client
	// clusters reads the cluster's ManagedCluster.
	clusters client.Reader
	config   *rest.Config
	http     *http.Client
	cluster  string
}

// newPlace reaches the hub by a connection. The types that are used there are
// known beforehand: discovery would cost requests and could fail.
func newPlace(c Config) (*place, error) {
	config := c.Hub
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), apimeta.RESTScopeRoot)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to publish on the hub: %w", err)
	}
	hub, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme.New(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("prepare to publish on the hub: %w", err)
	}
	p := &place{client: hub, clusters: c.Clusters, config: config, http: httpClient, cluster: c.Cluster}
	if p.clusters == nil {
		p.clusters = hub
	}
	return p, nil
}

func (p *place) key() client.ObjectKey {
	return client.ObjectKey{Namespace: p.cluster, Name: names.IssuerConfigMap}
}

// get returns what is published now, nil for nothing.
func (p *place) get(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var m corev1.ConfigMap
	err := p.client.Get(ctx, p.key(), &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ConfigMap %s on the hub: %w", p.key(), err)
	}
	return &m, nil
}

// write publishes.
func (p *place) write(ctx context.Context, data map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config := corev1ac.ConfigMap(names.IssuerConfigMap, p.cluster).WithData(data)
	if err := p.client.Apply(ctx, config, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s on the hub: %w", p.key(), err)
	}
	return nil
}

// remove withdraws what is published, if there is anything.
func (p *place) remove(ctx context.Context) error {
	live, err := p.get(ctx)
	if err != nil || live == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s on the hub: %w", p.key(), err)
	}
	return nil
}

// membership returns what the hub calls this cluster.
func (p *place) membership(ctx context.Context) (keytrust.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cluster := &clusterv1.ManagedCluster{}
	if err := p.clusters.Get(ctx, client.ObjectKey{Name: p.cluster}, cluster); err != nil {
		return keytrust.Cluster{}, fmt.Errorf("get ManagedCluster %s of the hub: %w", p.cluster, err)
	}
	return keytrust.ClusterOf(cluster), nil
}

// says reports whether a ConfigMap has this content, and since when.
func says(m *corev1.ConfigMap, content map[string]string) bool {
	if m == nil || !m.DeletionTimestamp.IsZero() {
		return false
	}
	_, err := time.Parse(time.RFC3339, m.Data[names.IssuerKeyPublishedAt])
	live := maps.Clone(m.Data)
	delete(live, names.IssuerKeyPublishedAt)
	return err == nil && len(m.BinaryData) == 0 && maps.Equal(live, content)
}

// content returns the data to publish for issuer. It retains the proofs in live as long
// as their keys are served, so that nothing is written while nothing changes, and the
// proof of a key that no longer signs is kept.
func content(cluster keytrust.Cluster, issuer Issuer, live *corev1.ConfigMap) (data map[string]string, unproven []string) {
	text := ""
	if live != nil {
		text = live.Data[names.IssuerKeyProofs]
	}
	proven := keytrust.Proofs(cluster, issuer.Name, issuer.KeySet.Keys, text)
	if proven[issuer.Tested] == "" {
		proven[issuer.Tested] = issuer.Proof
	}
	var proofs []string
	for _, key := range issuer.KeySet.Keys {
		if proof := proven[key.ID]; proof != "" {
			proofs = append(proofs, proof)
		} else {
			unproven = append(unproven, key.ID)
		}
	}
	return map[string]string{
		names.IssuerKeyIssuer: issuer.Name,
		names.IssuerKeyJWKS:   string(issuer.KeySet.JSON),
		names.IssuerKeyProofs: strings.Join(proofs, "\n"),
	}, unproven
}

// dated is content with the time at which it is published.
func dated(content map[string]string, now time.Time) map[string]string {
	data := maps.Clone(content)
	data[names.IssuerKeyPublishedAt] = metav1.NewTime(now).UTC().Format(time.RFC3339)
	return data
}
