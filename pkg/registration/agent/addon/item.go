package addon

import (
	"cmp"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// item is one registration of an add-on.
type item struct {
	addOn string
	// index is its place in the status.
	index int
	// signer is empty for a kubeClient registration.
	signer string
	// secret stores its credential.
	secret client.ObjectKey
	driver driver.AddOn
	// problem is why nothing can be obtained.
	problem error
	// declared is true if the subject is being written to the status now. A credential
	// is requested when the hub has seen it.
	declared bool
	state    state
}

// driverName returns the driver of a kubeClient registration. For a custom signer,
// for which the API has no field, it is csr.
func (it *item) driverName() string {
	if client := it.driver.Declare().KubeClient; client != nil {
		return client.Driver
	}
	return string(driver.CSR)
}

// label distinguishes the registrations of one add-on in metrics and messages.
func (it *item) label() string { return cmp.Or(it.signer, "kubeClient") }

// items lists the registrations of an add-on. The API allows one per signer; of
// several with the same Secret the first one counts, as it does on the hub.
func (r *Reconciler) items(s *scope) []*item {
	var items []*item
	for i := range s.addOn.Status.Registrations {
		registration := s.addOn.Status.Registrations[i]
		it := &item{addOn: s.addOn.Name, index: i}
		switch {
		case registration.Type == addonv1beta1.KubeClient:
			it.secret = client.ObjectKey{Namespace: s.namespace, Name: names.AddOnHubKubeconfigSecret(s.addOn.Name)}
		case registration.Type == addonv1beta1.CustomSigner && registration.CustomSigner != nil:
			it.signer = registration.CustomSigner.SignerName
			it.secret = client.ObjectKey{Namespace: s.namespace, Name: names.AddOnSignerSecret(s.addOn.Name, it.signer)}
		default:
			continue // The hub has not set the registration yet.
		}
		if slices.ContainsFunc(items, func(other *item) bool { return other.secret == it.secret }) {
			continue
		}
		it.driver = r.config.NewDriver(s.addOn, registration)
		it.problem = r.validateSecret(it.secret)
		items = append(items, it)
	}
	return items
}

// installNamespace returns the namespace of the add-on's agent.
// See docs/reference/wire-contract.md#addon-install-namespace.
func installNamespace(addOn *addonv1beta1.ManagedClusterAddOn) string {
	return cmp.Or(addOn.Status.Namespace, addOn.Annotations[names.AnnotationInstallNamespace], names.AddOnNamespace)
}

// hostedOn returns the cluster that runs a hosted add-on's agent, empty if it is the
// add-on's own cluster.
func hostedOn(addOn *addonv1beta1.ManagedClusterAddOn, cluster string) string {
	if host := addOn.Annotations[names.AnnotationHostingCluster]; host != cluster {
		return host
	}
	return ""
}

// declareDriver sets the driver of the kubeClient registration in the wanted status,
// and reports whether it changed.
func declareDriver(s *scope) bool {
	changed := false
	for _, it := range s.items {
		want := &s.want.Status.Registrations[it.index]
		if it.problem != nil || it.signer != "" || want.KubeClient != nil && want.KubeClient.Driver == it.driverName() {
			continue
		}
		if want.KubeClient == nil {
			want.KubeClient = &addonv1beta1.KubeClientConfig{}
		}
		want.KubeClient.Driver = it.driverName()
		changed = true
	}
	return changed
}

// declareSubjects sets the subjects of the drivers in the wanted status.
func declareSubjects(s *scope) {
	for _, it := range s.items {
		if it.problem != nil {
			continue
		}
		want := it.driver.Declare()
		if it.declared = !apiequality.Semantic.DeepEqual(want, s.addOn.Status.Registrations[it.index]); it.declared {
			s.want.Status.Registrations[it.index] = want
		}
	}
}
