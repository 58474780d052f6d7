package addons

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// Ref refers to an add-on of a cluster in output.
func Ref(cluster, name string, created time.Time) cli.Ref {
	return cli.RefTo("managedclusteraddon.addon.open-cluster-management.io", cluster, name, created)
}

// RefOf refers to an add-on of the inventory.
func RefOf(a inventory.AddOn) cli.Ref {
	ref := Ref(a.Cluster, a.Name, a.Created)
	if a.Object != nil {
		ref.Labels = a.Object.Labels
	}
	return ref
}

// RefOfRegistration refers to the add-on of a registration.
func RefOfRegistration(r inventory.Registration) cli.Ref { return Ref(r.Cluster, r.AddOn, time.Time{}) }

// RefOfOrphan refers to an object that is left over, or that has a condition too many.
func RefOfOrphan(l inventory.Orphan) cli.Ref {
	group := map[string]string{
		"Role": rbacv1.GroupName, "RoleBinding": rbacv1.GroupName,
		"CertificateSigningRequest": certificatesv1.GroupName, "ManagedClusterAddOn": addonv1beta1.GroupName,
	}[l.Kind]
	ref := cli.RefToKind(schema.GroupKind{Group: group, Kind: l.Kind}, l.Namespace, l.Name)
	ref.Labels = l.Object.GetLabels()
	return ref
}
