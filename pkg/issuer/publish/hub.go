package publish

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// FieldManager owns the published ConfigMap and the condition about it.
const FieldManager = "ocm.issuer.publish"

// requestTimeout bounds one request, so that a network that swallows it delays
// the next look and nothing else.
const requestTimeout = 15 * time.Second

// place is where a cluster's issuer is published.
type place struct {
	client  client.Client
	config  *rest.Config
	http    *http.Client
	cluster string
}

// newPlace reaches the hub by a connection. The one type that is used there is
// known beforehand: discovery would cost requests and could fail.
func newPlace(config *rest.Config, cluster string) (*place, error) {
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to publish on the hub: %w", err)
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme.New(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("prepare to publish on the hub: %w", err)
	}
	return &place{client: c, config: config, http: httpClient, cluster: cluster}, nil
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

// says reports whether a ConfigMap tells what is in issuer, and since when.
func says(m *corev1.ConfigMap, issuer Issuer) bool {
	if m == nil || !m.DeletionTimestamp.IsZero() {
		return false
	}
	_, err := time.Parse(time.RFC3339, m.Data[names.IssuerKeyPublishedAt])
	return err == nil && len(m.BinaryData) == 0 && maps.Equal(content(m.Data), contentOf(issuer))
}

func content(data map[string]string) map[string]string {
	return map[string]string{
		names.IssuerKeyIssuer: data[names.IssuerKeyIssuer],
		names.IssuerKeyJWKS:   data[names.IssuerKeyJWKS],
	}
}

func contentOf(issuer Issuer) map[string]string {
	return map[string]string{
		names.IssuerKeyIssuer: issuer.Name,
		names.IssuerKeyJWKS:   string(issuer.KeySet.JSON),
	}
}

func data(issuer Issuer, now time.Time) map[string]string {
	d := contentOf(issuer)
	d[names.IssuerKeyPublishedAt] = metav1.NewTime(now).UTC().Format(time.RFC3339)
	return d
}
