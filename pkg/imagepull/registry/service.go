package registry

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Service is a Service of a registry in the cluster.
type Service struct {
	types.NamespacedName

	// Port is the registry's; 0 stands for all ports of the Service.
	Port int32
}

// Services takes hosts from Services.
type Services struct {
	// Client reads from the cache.
	Client client.Reader
	// Services are where the hosts are.
	Services []Service
	// ClusterDomain is the end of the cluster's DNS names.
	ClusterDomain string
	// Found is kept up to date.
	Found *Source
}

// serviceCache limits a cache to the namespaces of Services, and to one Service where
// a namespace has only one of them.
func serviceCache(services []Service) cache.ByObject {
	namespaces := map[string]cache.Config{}
	for _, s := range services {
		config := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", s.Name)}
		if _, more := namespaces[s.Namespace]; more {
			config = cache.Config{}
		}
		namespaces[s.Namespace] = config
	}
	return cache.ByObject{Namespaces: namespaces}
}

// SetupWithManager starts the controller with mgr.
func (r *Services) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.registryservice").
		For(&corev1.Service{}).
		WatchesRawSource(source.Func(once)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. It looks at all Services, whichever has
// changed. One that is gone, or that has lost its address, has no hosts.
func (r *Services) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var hosts []string
	for _, s := range r.Services {
		var found corev1.Service
		if err := r.Client.Get(ctx, s.NamespacedName, &found); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		hosts = append(hosts, s.hosts(&found, r.ClusterDomain)...)
	}
	return ctrl.Result{}, r.Found.report(ctx, hosts)
}

// hosts are the names and addresses of a Service, each with its port, and without
// it where that is the default of a protocol. A Service without an address has none.
func (s Service) hosts(found *corev1.Service, domain string) []string {
	if found.Spec.ClusterIP == "" {
		return nil
	}
	name := found.Name + "." + found.Namespace + ".svc"
	addresses := []string{name, name + "." + domain}
	for _, ip := range found.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			addresses = append(addresses, ip)
		}
	}
	var hosts []string
	for _, port := range found.Spec.Ports {
		if s.Port != 0 && port.Port != s.Port {
			continue
		}
		for _, address := range addresses {
			withPort := net.JoinHostPort(address, strconv.Itoa(int(port.Port)))
			hosts = append(hosts, withPort)
			if slices.Contains([]int32{80, 443}, port.Port) {
				hosts = append(hosts, withPort[:strings.LastIndexByte(withPort, ':')])
			}
		}
	}
	return hosts
}
