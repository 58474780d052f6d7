package clustermanager

import (
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
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/replicas"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/report"
)

// FieldManager owns what the operator applies.
const FieldManager = "ocm.clustermanager"

// Config is how the operator works, from the flags of its role.
type Config struct {
	// Namespace is the operator's own; the image pull secret lies there.
	Namespace string
	// Image runs the components of a ClusterManager that names no image.
	Image string
	// Version is the release, written onto the CRDs.
	Version string
	// SyncLabels copies the ClusterManager's labels onto what is applied.
	SyncLabels bool
	// SkipRemoveCRDs leaves the CRDs, and with them all clusters, behind when
	// the ClusterManager is deleted.
	SkipRemoveCRDs bool
	// Replicas fixes the number of pods; 0 goes by the control plane nodes.
	Replicas int32
	// ControlPlane selects the control plane nodes.
	ControlPlane labels.Selector
	// Clock dates conditions.
	Clock clock.PassiveClock
}

// CacheOptions keep in memory only what belongs to ClusterManagers.
func CacheOptions() (cache.Options, error) {
	made, err := labels.NewRequirement(names.LabelCreatedByClusterManager, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	ours := cache.ByObject{Label: labels.NewSelector().Add(*made)}
	byObject := map[client.Object]cache.ByObject{
		// The pull secret and its copy have one name; the operator may read no other.
		&corev1.Secret{}: {Field: fields.OneTermEqualSelector("metadata.name", names.ImagePullSecret)},
		// So it is with the CAs of the webhooks.
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{names.HubNamespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", names.CABundleConfigMap),
		},
	}
	for _, kind := range owned() {
		byObject[kind] = ours
	}
	return cache.Options{ByObject: byObject}, nil
}

// owned are the kinds that the operator applies, the pull secret aside.
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

// removable are the kinds of which an object is deleted when it is no longer
// wanted, in the order in which they go.
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
	r := &Reconciler{
		config:   config,
		client:   mgr.GetClient(),
		uncached: mgr.GetAPIReader(),
		applier:  &apply.Applier{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), FieldManager: FieldManager},
		replicas: replicas.Rule{
			Fixed: config.Replicas, ControlPlane: config.ControlPlane, Nodes: mgr.GetAPIReader(),
		},
		status: report.Writer{
			Client: mgr.GetClient(), FieldManager: FieldManager, Clock: config.Clock,
			Kind: schema.GroupVersion(operatorv1.GroupVersion).WithKind("ClusterManager"),
		},
	}
	made := owner.Resource{
		Client: mgr.GetClient(), List: &operatorv1.ClusterManagerList{}, Label: names.LabelCreatedByClusterManager, Namespace: config.Namespace,
	}
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("operator.clustermanager").
		For(&operatorv1.ClusterManager{}).
		// When one goes, the next takes its place.
		Watches(&operatorv1.ClusterManager{}, handler.EnqueueRequestsFromMapFunc(made.All), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(made.BySecret)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(made.All))
	byLabel := handler.EnqueueRequestsFromMapFunc(made.ByLabel)
	for _, kind := range owned() {
		controller = controller.Watches(kind, byLabel)
	}
	return controller.Complete(r)
}
