package registry

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lookup configures the sources of hosts in the cluster.
type Lookup struct {
	// ConfigMap has a list of hosts, if it is named.
	ConfigMap types.NamespacedName
	// Services lead to registries in the cluster, whose DNS names end in
	// ClusterDomain.
	Services      []Service
	ClusterDomain string
	// Routes lead to registries from outside of the cluster.
	Routes []types.NamespacedName
}

// Empty reports whether there is nothing to look up.
func (l Lookup) Empty() bool {
	return l.ConfigMap.Name == "" && len(l.Services) == 0 && len(l.Routes) == 0
}

// CacheObjects limits a cache to the objects of the lookup.
func (l Lookup) CacheObjects() map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{}
	if l.ConfigMap.Name != "" {
		objects[&corev1.ConfigMap{}] = configMapCache(l.ConfigMap)
	}
	if len(l.Services) > 0 {
		objects[&corev1.Service{}] = serviceCache(l.Services)
	}
	return objects
}

// SetupWithManager adds to mgr what keeps hosts up to date.
func (l Lookup) SetupWithManager(mgr ctrl.Manager, hosts *Hosts, clk clock.WithTicker) error {
	var errs [3]error
	if l.ConfigMap.Name != "" {
		r := &Reconciler{
			Client: mgr.GetClient(), ConfigMap: l.ConfigMap, Hosts: hosts, Found: hosts.NewSource(),
			Events: mgr.GetEventRecorder("pullsecret.registry"),
		}
		errs[0] = r.SetupWithManager(mgr)
	}
	if len(l.Services) > 0 {
		r := &Services{Client: mgr.GetClient(), Services: l.Services, ClusterDomain: l.ClusterDomain, Found: hosts.NewSource()}
		errs[1] = r.SetupWithManager(mgr)
	}
	if len(l.Routes) > 0 {
		errs[2] = mgr.Add(&Routes{Client: mgr.GetAPIReader(), Routes: l.Routes, Found: hosts.NewSource(), Clock: clk})
	}
	return errors.Join(errs[:]...)
}
