package registry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// Times between two looks at Routes. They are read and not watched: a watch of a
// kind that the cluster does not serve would end the process.
const (
	routePeriod = time.Minute
	routeRetry  = 5 * time.Second
)

// Routes takes hosts from Routes of OpenShift. It is a manager.Runnable.
type Routes struct {
	// Client reads from the API server.
	Client client.Reader
	// Routes are where the hosts are.
	Routes []types.NamespacedName
	// Found is kept up to date.
	Found *Source
	// Clock is the time.
	Clock clock.WithTicker
}

// Start implements manager.Runnable: it reads until ctx ends, and no error ends it.
func (r *Routes) Start(ctx context.Context) error {
	for {
		next := routePeriod
		if err := r.read(ctx); err != nil && ctx.Err() == nil {
			next = routeRetry
			klog.FromContext(ctx).WithName("pullsecret.registryroute").Info("Failed to read Routes; pull secrets retain the previous hosts", "reason", err.Error())
		}
		if !pause.For(ctx, r.Clock, next) {
			return nil
		}
	}
}

// read reads all Routes once.
func (r *Routes) read(ctx context.Context) error {
	var hosts []string
	for _, route := range r.Routes {
		found, err := r.hosts(ctx, route)
		if err != nil {
			return err
		}
		hosts = append(hosts, found...)
	}
	return r.Found.report(ctx, hosts)
}

// hosts returns the hosts of a Route in its routers. It returns none for a Route that
// does not exist or may not be read, or if the cluster does not know the kind.
func (r *Routes) hosts(ctx context.Context, key types.NamespacedName) (hosts []string, err error) {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"})
	err = r.Client.Get(ctx, key, route)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Route %s: %w", key, err)
	}
	ingresses, _, err := unstructured.NestedSlice(route.Object, "status", "ingress")
	for _, item := range ingresses {
		ingress, _ := item.(map[string]any)
		if host, _, _ := unstructured.NestedString(ingress, "host"); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts, err
}
