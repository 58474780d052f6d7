package klusterlet

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// FieldManager owns what the operator applies.
const FieldManager = names.FieldManagerAgentOperator

// Config is how the operator works, from the flags of its role.
type Config struct {
	// Namespace is the operator's own, with the image pull secret.
	Namespace string
	// Image is the image of the agents of a Klusterlet that sets none.
	Image string
	// Version is the release, written onto the CRDs.
	Version string
	// SyncLabels copies the Klusterlet's labels onto what is applied.
	SyncLabels bool
	// SkipAddOnNamespace leaves the default add-on namespace out.
	SkipAddOnNamespace bool
	// Replicas is the number of agent pods; 0 depends on the control plane nodes.
	Replicas int32
	// ControlPlane selects the control plane nodes.
	ControlPlane labels.Selector
	// Drivers are the registration drivers of clusters.
	Drivers driver.Catalog
	// Clock sets transition times of conditions.
	Clock clock.PassiveClock
}

// CacheOptions limit the cache to what belongs to Klusterlets.
func CacheOptions() (cache.Options, error) {
	return operand.CacheOptions(names.LabelCreatedByKlusterlet, owned())
}

// owned returns the kinds that the operator applies, except the pull secret and the
// namespaces, which the cache has all of.
func owned() []client.Object {
	return []client.Object{
		&apiextensionsv1.CustomResourceDefinition{},
		&appsv1.Deployment{},
		&corev1.ServiceAccount{},
		&rbacv1.ClusterRole{},
		&rbacv1.ClusterRoleBinding{},
		&rbacv1.Role{},
		&rbacv1.RoleBinding{},
	}
}

// Setup adds the operator to mgr, whose cache has CacheOptions.
func Setup(mgr ctrl.Manager, config Config) error {
	r := newReconciler(mgr, config)
	if err := r.control(mgr, r); err != nil {
		return err
	}
	return setupAddOnPullSecret(mgr, config)
}

func newReconciler(mgr ctrl.Manager, config Config) *Reconciler {
	return &Reconciler{config: config, Operator: operand.Operator{
		Kind:      schema.GroupVersion(operatorv1.GroupVersion).WithKind("Klusterlet"),
		Finalizer: names.FinalizerKlusterlet, FieldManager: FieldManager, Retry: time.Second,
		Replicas: operand.Replicas{Fixed: config.Replicas, ControlPlane: config.ControlPlane}, Clock: config.Clock,
	}.With(mgr)}
}

// control adds a controller that calls called for every event of the operator's
// watches or of more.
func (r *Reconciler) control(mgr ctrl.Manager, called reconcile.Reconciler, more ...source.Source) error {
	klusterlets := operand.Resource{
		Client: mgr.GetClient(), List: &operatorv1.KlusterletList{}, Label: names.LabelCreatedByKlusterlet, Namespace: r.config.Namespace,
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(klusterlets.ByLabel)
	operator := ctrl.NewControllerManagedBy(mgr).
		Named("operator.klusterlet").
		For(&operatorv1.Klusterlet{}).
		// Another Klusterlet takes over what they share.
		Watches(&operatorv1.Klusterlet{}, handler.EnqueueRequestsFromMapFunc(klusterlets.All), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Namespace{}, byLabel).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(klusterlets.BySecret))
	for _, kind := range owned() {
		operator.Watches(kind, byLabel)
	}
	for _, s := range more {
		operator.WatchesRawSource(s)
	}
	return operator.Complete(called)
}
