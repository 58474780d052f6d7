package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// Sources read the facts about a managed cluster.
type Sources interface {
	// Health probes the API server.
	Health(ctx context.Context) Probe
	// Version returns the API server's version, "" if it is unknown.
	Version(ctx context.Context) string
	// Nodes lists the nodes.
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Claims returns the claims to report, nil if claims are not reported.
	Claims(ctx context.Context) ([]clusterv1.ManagedClusterClaim, error)
}

// ManagedCluster reads the facts from a managed cluster.
type ManagedCluster struct {
	// REST is a client of the API server.
	REST rest.Interface
	// Reader is a cache of nodes and claims.
	Reader client.Reader
	// HasClaims reports whether claims can be read now: their CRD may not be
	// installed. If it is nil, claims are not reported.
	HasClaims func(ctx context.Context) bool
	// Rules select the claims that are reported.
	Rules ClaimRules
}

var _ Sources = (*ManagedCluster)(nil)

// Health implements Sources: /livez, or where that is missing or forbidden
// /healthz.
func (c *ManagedCluster) Health(ctx context.Context) Probe {
	probe := c.get(ctx, "/livez")
	if probe.Code == http.StatusNotFound || probe.Code == http.StatusForbidden {
		return c.get(ctx, "/healthz")
	}
	return probe
}

func (c *ManagedCluster) get(ctx context.Context, path string) Probe {
	var code int
	body, err := c.REST.Get().AbsPath(path).Do(ctx).StatusCode(&code).Raw()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code = int(status.ErrStatus.Code)
	}
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%.100s", body)
	}
	return Probe{Code: code, Err: err}
}

// Version implements Sources.
func (c *ManagedCluster) Version(ctx context.Context) string {
	body, err := c.REST.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "" // Health reports the problem.
	}
	var info version.Info
	if json.Unmarshal(body, &info) != nil {
		return ""
	}
	return info.GitVersion
}

// Nodes implements Sources.
func (c *ManagedCluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	err := c.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// Claims implements Sources.
func (c *ManagedCluster) Claims(ctx context.Context) ([]clusterv1.ManagedClusterClaim, error) {
	if c.HasClaims == nil || !c.HasClaims(ctx) {
		return nil, nil
	}
	var list clusterv1alpha1.ClusterClaimList
	if err := c.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return c.Rules.Select(list.Items), nil
}
