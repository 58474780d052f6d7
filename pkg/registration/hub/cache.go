package hub

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// CacheOptions returns the options of the manager's cache: which objects it has.
func CacheOptions() (cache.Options, error) {
	ofCluster, err := labels.Parse(names.LabelClusterName)
	if err != nil {
		return cache.Options{}, err
	}
	registration, err := labels.Parse(names.LabelClusterName + ",!" + names.LabelAddOnName)
	if err != nil {
		return cache.Options{}, err
	}
	labelled := cache.ByObject{Label: ofCluster}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Namespace{}:                         labelled,
		&rbacv1.ClusterRole{}:                       labelled,
		&rbacv1.ClusterRoleBinding{}:                labelled,
		&rbacv1.RoleBinding{}:                       labelled,
		&coordinationv1.Lease{}:                     {Field: fields.OneTermEqualSelector("metadata.name", names.ManagedClusterLease)},
		&certificatesv1.CertificateSigningRequest{}: {Label: registration, Transform: slimCSR},
		&clusterv1.ManagedCluster{}:                 {Transform: slimCluster},
		&addonv1beta1.ManagedClusterAddOn{}:         {Transform: slimAddOn},
	}}, nil
}

// The slim functions drop fields that no controller reads. Controllers write
// patches only, so a dropped field is never written back.

func slimCluster(in any) (any, error) {
	if cluster, ok := in.(*clusterv1.ManagedCluster); ok {
		cluster.ManagedFields = nil
		cluster.Spec.ManagedClusterClientConfigs = nil
		cluster.Status.ClusterClaims = nil
		cluster.Status.Capacity = nil
		cluster.Status.Allocatable = nil
		cluster.Status.ManagedNamespaces = nil
	}
	return in, nil
}

func slimAddOn(in any) (any, error) {
	if addOn, ok := in.(*addonv1beta1.ManagedClusterAddOn); ok {
		addOn.ManagedFields = nil
		addOn.Spec = addonv1beta1.ManagedClusterAddOnSpec{}
		addOn.Status = addonv1beta1.ManagedClusterAddOnStatus{Conditions: addOn.Status.Conditions}
	}
	return in, nil
}

func slimCSR(in any) (any, error) {
	if csr, ok := in.(*certificatesv1.CertificateSigningRequest); ok {
		csr.ManagedFields = nil
		csr.Status.Certificate = nil
	}
	return in, nil
}
