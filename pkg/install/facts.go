package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Facts are all that the checks depend on.
type Facts struct {
	// Kubernetes is the version of the API server.
	Kubernetes *version.Version
	// Manager is the live ClusterManager, if any.
	Manager *operatorv1.ClusterManager
	// Granted are the clusters to which a driver of the live hub has granted something.
	Granted map[driver.AuthType][]string
	// Klusterlet is the live Klusterlet, if any; Hidden says that we may not read it.
	Klusterlet *operatorv1.Klusterlet
	Hidden     bool
	// Release is the release of ours that last wrote the operator's CRD; empty
	// when there is none, or when it is upstream's.
	Release string
	// Missing are the permissions that the installation needs and we lack.
	Missing []access.Right
	// Terminating are namespaces that we need and that are being deleted.
	Terminating []string
	// Pulls is true if nodes pull images, as all but those of local clusters do.
	Pulls bool
	// Other is what another product runs in the place of what is to be installed.
	Other *origin.Installation
}

// search looks for an installation of another product.
type search func(ctx context.Context, reader client.Reader, namespaces ...string) (*origin.Installation, error)

// gather reads the facts. objs are what will be applied; crd is the operator's
// CRD; others finds who else is there; more are permissions that are needed besides.
func (r *Runner) gather(ctx context.Context, objs []client.Object, crd string, others search, more ...access.Right) (Facts, error) {
	c := r.Client
	// Other products are found by their Deployments.
	seeing := access.Right{Verb: "list", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}}
	f, err := gatherCommon(ctx, c, r.Discovery, objs, append(more, seeing)...)
	if err != nil {
		return f, err
	}
	if f.Manager, err = liveManager(ctx, c); err != nil {
		return f, err
	}
	if f.Klusterlet, f.Hidden, err = getReadable(ctx, c, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}); err != nil {
		return f, err
	}
	if f.Release, err = release(ctx, c, crd); err != nil {
		return f, err
	}
	f.Other, err = others(ctx, c)
	return f, err
}

// gatherCommon reads the facts that every installation depends on. more are
// permissions that it needs besides those to apply objs.
func gatherCommon(ctx context.Context, c client.Client, disco discovery.ServerVersionInterface, objs []client.Object, more ...access.Right) (Facts, error) {
	var f Facts
	info, err := disco.ServerVersion()
	if err != nil {
		return f, fmt.Errorf("version of the cluster: %w", err)
	}
	if f.Kubernetes, err = version.ParseGeneric(info.GitVersion); err != nil {
		return f, fmt.Errorf("version of the cluster: %w", err)
	}
	if f.Missing, err = missing(ctx, c, append(permissions(c, objs), more...)); err != nil {
		return f, err
	}
	if f.Pulls, err = pullsImages(ctx, c); err != nil {
		return f, err
	}
	f.Terminating, err = terminating(ctx, c, objs)
	return f, err
}

// granted returns the clusters to which the drivers of a live hub have granted something.
func granted(ctx context.Context, c client.Client, manager *operatorv1.ClusterManager, drivers driver.Catalog) (map[driver.AuthType][]string, error) {
	clusters := map[driver.AuthType][]string{}
	for _, e := range drivers.Of(manager) {
		if e.Grants().HubFlag == "" {
			continue
		}
		found, err := driver.GrantedClusters(ctx, c, names.HubNamespace, e.Type())
		if err != nil && !absent(err) { // The operator looks too.
			return nil, err
		}
		clusters[e.Type()] = found
	}
	return clusters, nil
}

// absent reports whether an object or its whole kind does not exist. What we
// may not read counts as absent here: the permission check reports it.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) || apierrors.IsForbidden(err)
}

func liveManager(ctx context.Context, c client.Client) (*operatorv1.ClusterManager, error) {
	return getLive(ctx, c, client.ObjectKey{Name: names.ClusterManagerName}, &operatorv1.ClusterManager{})
}

func liveKlusterlet(ctx context.Context, c client.Client) (*operatorv1.Klusterlet, error) {
	return getLive(ctx, c, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{})
}

// getLive reads an object, and returns nil if it is absent.
func getLive[T client.Object](ctx context.Context, c client.Client, key client.ObjectKey, obj T) (T, error) {
	live, _, err := getReadable(ctx, c, key, obj)
	return live, err
}

// getReadable is getLive for callers to whom it matters whether the object is absent, or
// hidden: we may not read it.
func getReadable[T client.Object](ctx context.Context, c client.Client, key client.ObjectKey, obj T) (live T, hidden bool, err error) {
	var none T
	switch err := c.Get(ctx, key, obj); {
	case err == nil:
		return obj, false, nil
	case absent(err):
		return none, apierrors.IsForbidden(err), nil
	default:
		return none, false, fmt.Errorf("get %s: %w", strings.TrimPrefix(key.String(), "/"), err)
	}
}

func release(ctx context.Context, c client.Client, name string) (string, error) {
	crd, err := getLive(ctx, c, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
	if crd == nil {
		return "", err
	}
	return crd.Annotations[names.AnnotationVersion], nil
}

// permissions lists what applying objs takes.
func permissions(c client.Client, objs []client.Object) []access.Right {
	var out []access.Right
	for _, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, c.Scheme())
		if err != nil {
			continue
		}
		// The kinds of our own CRDs are not served yet; plural is a guess that
		// is right for all kinds we apply.
		plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
		for _, verb := range []string{"get", "create", "patch"} {
			p := access.Right{Verb: verb, Resource: plural.GroupResource(), Namespace: obj.GetNamespace()}
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// missing asks the API server which of the permissions we lack.
func missing(ctx context.Context, c client.Client, wanted []access.Right) ([]access.Right, error) {
	everything := []access.Right{{Verb: "*", Resource: schema.GroupResource{Group: "*", Resource: "*"}}}
	if lacked, err := access.Missing(ctx, c, everything); err != nil || len(lacked) == 0 {
		return nil, err
	}
	return access.Missing(ctx, c, wanted)
}

func terminating(ctx context.Context, c client.Client, objs []client.Object) ([]string, error) {
	var out []string
	for _, obj := range objs {
		if _, ok := obj.(*corev1.Namespace); !ok {
			continue
		}
		live, err := getLive(ctx, c, client.ObjectKeyFromObject(obj), &corev1.Namespace{})
		if err != nil {
			return nil, err
		}
		if live != nil && !live.DeletionTimestamp.IsZero() {
			out = append(out, live.Name)
		}
	}
	return out, nil
}

// ServerVersion returns the version of the API server that config connects to.
func ServerVersion(config *rest.Config) (*apiversion.Info, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery for %s: %w", config.Host, err)
	}
	return disco.ServerVersion()
}

// Serves reports whether the API server of c serves a kind.
func Serves(c client.Client, gvk schema.GroupVersionKind) (bool, error) {
	_, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at the cluster's APIs: %w", err)
	}
	return true, nil
}
