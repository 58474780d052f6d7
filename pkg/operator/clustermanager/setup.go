package clustermanager

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// FieldManager owns what the operator applies.
const FieldManager = names.FieldManagerHubOperator

// Config is how the operator works, from the flags of its role.
type Config struct {
	// Namespace is the operator's own, with the image pull secret.
	Namespace string
	// Image is the image of the components of a ClusterManager that sets none.
	Image string
	// Version is the release, written onto the CRDs.
	Version string
	// SyncLabels copies the ClusterManager's labels onto what is applied.
	SyncLabels bool
	// SkipRemoveCRDs retains the CRDs, and with them all clusters, when the
	// ClusterManager is deleted.
	SkipRemoveCRDs bool
	// Replicas is the number of pods; 0 depends on the control plane nodes.
	Replicas int32
	// ControlPlane selects the control plane nodes.
	ControlPlane labels.Selector
	// Drivers are the registration drivers of clusters.
	Drivers driver.Catalog
	// Clock sets transition times of conditions.
	Clock clock.PassiveClock
}

// CacheOptions limit the cache to what belongs to ClusterManagers.
func CacheOptions() (cache.Options, error) {
	options, err := operand.CacheOptions(names.LabelCreatedByClusterManager, owned())
	if err == nil {
		// The operator may read no other ConfigMap than that with the CAs of the webhooks.
		options.ByObject[&corev1.ConfigMap{}] = cache.ByObject{
			Namespaces: map[string]cache.Config{names.HubNamespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", names.CABundleConfigMap),
		}
	}
	return options, err
}

// owned returns the kinds that the operator applies, except the pull secret.
func owned() []client.Object {
	return []client.Object{
		&apiextensionsv1.CustomResourceDefinition{},
		&corev1.Namespace{},
		&corev1.ServiceAccount{},
		&corev1.Service{},
		&rbacv1.ClusterRole{},
		&rbacv1.ClusterRoleBinding{},
		&rbacv1.Role{},
		&rbacv1.RoleBinding{},
		&admissionregistrationv1.ValidatingAdmissionPolicy{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		&appsv1.Deployment{},
		&policyv1.PodDisruptionBudget{},
		&networkingv1.NetworkPolicy{},
	}
}

// removable returns the kinds whose objects are deleted when they are no longer
// desired, in the order of deletion.
func removable() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{},
		&policyv1.PodDisruptionBudgetList{},
		&networkingv1.NetworkPolicyList{},
		&corev1.ServiceList{},
		&rbacv1.ClusterRoleBindingList{},
		&rbacv1.ClusterRoleList{},
		&rbacv1.RoleBindingList{},
		&rbacv1.RoleList{},
		&corev1.ServiceAccountList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyList{},
	}
}

// Setup adds the operator to mgr, whose cache has CacheOptions.
func Setup(mgr ctrl.Manager, config Config) error {
	r := &Reconciler{config: config, Operator: operand.Operator{
		Kind: schema.GroupVersion(operatorv1.GroupVersion).WithKind("ClusterManager"),
		// The content of namespaces and the objects of CRDs are not watched.
		Finalizer: names.FinalizerClusterManager, FieldManager: FieldManager, Retry: 2 * time.Second,
		Replicas: operand.Replicas{Fixed: config.Replicas, ControlPlane: config.ControlPlane}, Clock: config.Clock,
	}.With(mgr)}
	managers := operand.Resource{
		Client: mgr.GetClient(), List: &operatorv1.ClusterManagerList{}, Label: names.LabelCreatedByClusterManager, Namespace: config.Namespace,
	}
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("operator.clustermanager").
		For(&operatorv1.ClusterManager{}).
		// When one is deleted, the next takes its place.
		Watches(&operatorv1.ClusterManager{}, handler.EnqueueRequestsFromMapFunc(managers.All), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(managers.BySecret)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(managers.All))
	byLabel := handler.EnqueueRequestsFromMapFunc(managers.ByLabel)
	for _, kind := range owned() {
		controller = controller.Watches(kind, byLabel)
	}
	return controller.Complete(r)
}
