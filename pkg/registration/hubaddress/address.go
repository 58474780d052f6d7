package hubaddress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// probeTimeout bounds the look at a hub's address from this machine, which may
// not be able to reach it at all.
const probeTimeout = 3 * time.Second

// maxPins is how many authorities are named in a join command; a longer bundle
// is a list of public roots.
const maxPins = 4

// Address is where managed clusters reach a hub and what they pin.
type Address struct {
	Server string
	CA     []byte
	Pins   []bootstrap.CAHash
	// Local says why another machine cannot use the address; empty when it can.
	Local string
	// Drivers are the registration drivers of the hub.
	Drivers []driver.Enabled
}

// Find returns the address of the hub that config connects to: override, the address that
// the ClusterManager records, or the server of config. drivers are all registration drivers.
func Find(ctx context.Context, drivers driver.Catalog, config *rest.Config, c client.Reader, override string) (Address, error) {
	var manager operatorv1.ClusterManager
	// A hub that is not installed yet, or that we may not look into, has none.
	if err := c.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &manager); err != nil {
		manager = operatorv1.ClusterManager{}
	}
	u, err := bootstrap.ParseServer(cmp.Or(override, manager.Annotations[names.AnnotationHubServer], config.Host))
	if err != nil {
		return Address{}, err
	}
	address := Address{Server: u.String(), Local: bootstrap.LocalOnly(u.String())}
	address.Drivers = drivers.Of(&manager)
	if address.Local != "" && SharesMachine(ctx, c) {
		address.Local = ""
	}
	address.CA, err = authority(ctx, config, c)
	if err != nil || len(address.CA) == 0 {
		return address, err
	}
	if address.Pins, err = bootstrap.HashesOf(address.CA); err != nil {
		return address, fmt.Errorf("the hub's CA: %w", err)
	}
	return address, nil
}

// SharesMachine reports whether a cluster says of itself that it runs on one
// machine with the clusters it deals with, as local clusters do. A loopback
// address is meant there.
func SharesMachine(ctx context.Context, c client.Reader) bool {
	var info corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}, &info)
	return err == nil && info.Annotations[names.AnnotationSharedMachine] == "true"
}

// authority returns the CA of the hub: from the kubeconfig, or from what every
// cluster shows to authenticated users.
func authority(ctx context.Context, config *rest.Config, c client.Reader) ([]byte, error) {
	switch {
	case len(config.CAData) > 0:
		return config.CAData, nil
	case config.CAFile != "":
		return os.ReadFile(config.CAFile)
	}
	var roots corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: "kube-root-ca.crt"}, &roots); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []byte(roots.Data["ca.crt"]), nil
}

// Probe looks at the address from this machine as a joining cluster would, and
// drops pins that it does not need. It returns what a user should know.
func (a *Address) Probe(ctx context.Context) (warning string) {
	if len(a.Pins) > maxPins {
		a.Pins = nil
		return "the hub's CA bundle is too long to be pinned in the join command; give it to join with --ca-file"
	}
	if len(a.CA) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := bootstrap.Discover(ctx, bootstrap.Endpoint{Server: a.Server, CA: a.CA})
	var problem *bootstrap.Error
	if !errors.As(err, &problem) {
		return ""
	}
	switch problem.Kind {
	case bootstrap.Untrusted:
		if _, err := bootstrap.Discover(ctx, bootstrap.Endpoint{Server: a.Server}); err == nil {
			a.Pins = nil
			return ""
		}
		return fmt.Sprintf("the certificate at %s is not signed by the hub's CA: give its CA to join with --ca-file", a.Server)
	case bootstrap.WrongHost:
		return fmt.Sprintf("the hub's certificate is not valid for %s: managed clusters will refuse it", a.Server)
	case bootstrap.Unreachable:
		return a.Server + " cannot be reached from here; managed clusters must be able to"
	default:
		return ""
	}
}
