package lookup

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ClusterManager returns the ClusterManager of the hub, nil if it is absent.
func ClusterManager(ctx context.Context, c client.Reader) (*operatorv1.ClusterManager, error) {
	return Get(ctx, c, client.ObjectKey{Name: names.ClusterManagerName}, &operatorv1.ClusterManager{})
}

// Klusterlet returns the Klusterlet that join installs, nil if it is absent.
func Klusterlet(ctx context.Context, c client.Reader) (*operatorv1.Klusterlet, error) {
	return Get(ctx, c, client.ObjectKey{Name: names.KlusterletName}, &operatorv1.Klusterlet{})
}

// Namespace returns the namespace of the agent of a Klusterlet.
func Namespace(k *operatorv1.Klusterlet) string {
	if k.Spec.Namespace != "" {
		return k.Spec.Namespace
	}
	return names.AgentNamespace
}

// Get reads an object into obj and returns it, or nil if it is Absent.
func Get[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, obj T) (T, error) {
	live, _, err := GetReadable(ctx, c, key, obj)
	return live, err
}

// GetReadable is Get for callers to whom it matters why there is no object: hidden is true
// if they may not read it.
func GetReadable[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, obj T) (live T, hidden bool, err error) {
	var none T
	switch err := c.Get(ctx, key, obj); {
	case err == nil:
		return obj, false, nil
	case Absent(err):
		return none, apierrors.IsForbidden(err), nil
	default:
		return none, false, fmt.Errorf("get %s: %w", strings.TrimPrefix(key.String(), "/"), err)
	}
}

// SecretData returns the data of a Secret, nil if it does not exist or may not be read.
func SecretData(ctx context.Context, c client.Reader, namespace, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// Absent reports whether an object or its whole kind does not exist. What the caller may
// not read counts as absent: the preflight reports missing permissions.
func Absent(err error) bool { return Gone(err) || apierrors.IsForbidden(err) }

// Gone reports whether an error says that an object or its kind does not exist.
func Gone(err error) bool { return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) }

// IgnoreGone drops the error about an object or a kind that does not exist.
func IgnoreGone(err error) error {
	if Gone(err) {
		return nil
	}
	return err
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

// IsHub reports whether the cluster serves what only a hub serves.
func IsHub(c client.Client) (bool, error) { return Serves(c, operatorKind("ClusterManager")) }

// IsManaged reports whether the cluster serves what only a managed cluster serves.
func IsManaged(c client.Client) (bool, error) { return Serves(c, operatorKind("Klusterlet")) }

func operatorKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: operatorv1.GroupName, Version: "v1", Kind: kind}
}
