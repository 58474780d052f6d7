package pullsecrets

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
)

// registryFlags say which registries the pull secrets are for.
type registryFlags struct {
	hosts         []string
	configMap     string
	services      []string
	clusterDomain string
	routes        []string
}

func (f *registryFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.hosts, "registry", nil, "Registry host, as in the names of its images, or HOST=AUDIENCE; can be repeated")
	flags.StringVar(&f.configMap, "registry-configmap", "", "ConfigMap with more hosts under the key hosts, as NAMESPACE/NAME; it is watched")
	flags.StringSliceVar(&f.services, "registry-service", nil, "Service of a registry in the cluster, as NAMESPACE/NAME[:PORT]; it is watched; can be repeated")
	flags.StringVar(&f.clusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster, for the names of Services")
	flags.StringSliceVar(&f.routes, "registry-route", nil, "OpenShift Route of a registry, as NAMESPACE/NAME; it is read each minute; can be repeated")
}

// complete reports whether each registry has an audience of its own.
func (f *registryFlags) complete() bool {
	lacks := func(host string) bool { return !strings.Contains(host, "=") }
	return f.configMap == "" && len(f.services) == 0 && len(f.routes) == 0 && !slices.ContainsFunc(f.hosts, lacks)
}

// lookup is where more hosts are looked up.
func (f *registryFlags) lookup() (registry.Lookup, error) {
	l := registry.Lookup{ClusterDomain: f.clusterDomain}
	var errs []error
	if f.configMap != "" {
		var err error
		l.ConfigMap, err = namespacedName("--registry-configmap", f.configMap)
		errs = append(errs, err)
	}
	for _, text := range f.services {
		service, err := registryService(text)
		l.Services, errs = append(l.Services, service), append(errs, err)
	}
	for _, text := range f.routes {
		route, err := namespacedName("--registry-route", text)
		l.Routes, errs = append(l.Routes, route), append(errs, err)
	}
	return l, errors.Join(errs...)
}

// registryService reads NAMESPACE/NAME[:PORT].
func registryService(text string) (registry.Service, error) {
	name, port, hasPort := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	if hasPort && (err != nil || number == 0) {
		return registry.Service{}, fmt.Errorf("--registry-service %q: %q is not a port", text, port)
	}
	service, err := namespacedName("--registry-service", name)
	return registry.Service{NamespacedName: service, Port: int32(number)}, err
}

// namespacedName reads NAMESPACE/NAME.
func namespacedName(flag, text string) (types.NamespacedName, error) {
	name, ok := cli.NamespacedName(text)
	if !ok {
		return name, fmt.Errorf("%s %q: write it as NAMESPACE/NAME", flag, text)
	}
	return name, nil
}
