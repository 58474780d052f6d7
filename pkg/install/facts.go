package install

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
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
	// Other is the installation of another product in the same place.
	Other *origin.Installation
}

// search looks for an installation of another product.
type search func(ctx context.Context, reader client.Reader, namespaces ...string) (*origin.Installation, error)

// Gather reads the facts. objs are the objects to apply; crd is the operator's
// CRD; others finds who else is there; more are permissions that are needed besides.
func (r *Runner) Gather(ctx context.Context, objs []client.Object, crd string, others search, more ...access.Right) (Facts, error) {
	c := r.Client
	// Other products are found by their Deployments.
	seeing := access.Right{Verb: "list", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}}
	f, err := GatherCommon(ctx, c, r.Discovery, objs, append(more, seeing)...)
	if err != nil {
		return f, err
	}
	if f.Manager, err = lookup.ClusterManager(ctx, c); err != nil {
		return f, err
	}
	if f.Klusterlet, f.Hidden, err = lookup.GetReadable(ctx, c, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{}); err != nil {
		return f, err
	}
	if f.Release, err = release(ctx, c, crd); err != nil {
		return f, err
	}
	f.Other, err = others(ctx, c)
	return f, err
}

// GatherCommon reads the facts that every installation depends on. more are
// permissions that it needs besides those to apply objs.
func GatherCommon(ctx context.Context, c client.Client, disco discovery.ServerVersionInterface, objs []client.Object, more ...access.Right) (Facts, error) {
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

func release(ctx context.Context, c client.Client, name string) (string, error) {
	crd, err := lookup.Get(ctx, c, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
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
		live, err := lookup.Get(ctx, c, client.ObjectKeyFromObject(obj), &corev1.Namespace{})
		if err != nil {
			return nil, err
		}
		if live != nil && !live.DeletionTimestamp.IsZero() {
			out = append(out, live.Name)
		}
	}
	return out, nil
}
