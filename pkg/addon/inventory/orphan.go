package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// settledFor is how long a settled request is kept for administrators to read, as
// Kubernetes itself does.
const settledFor = time.Hour

// Orphan is the stable schema of an object that an earlier driver left.
type Orphan struct {
	// Kind is the kind of the object.
	Kind      string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster"`
	AddOn     string `json:"addOn"`
	// Condition is the type of the condition that is left over; the object
	// itself stays then.
	Condition string `json:"condition,omitempty"`
	// Why is one sentence.
	Why string `json:"why"`

	// Object is the object as last read.
	Object client.Object `json:"-"`
}

// String names the object as kubectl does.
func (l Orphan) String() string {
	name := strings.ToLower(l.Kind) + "/" + l.Name
	if l.Namespace != "" {
		name = strings.ToLower(l.Kind) + "/" + l.Namespace + "/" + l.Name
	}
	if l.Condition != "" {
		name += " condition " + l.Condition
	}
	return name
}

// HubObjects are the objects that may be orphaned.
type HubObjects struct {
	// Infrastructure are the objects with the labels of the token driver.
	Infrastructure []client.Object
	// Requests are the CSRs of add-ons.
	Requests []certificatesv1.CertificateSigningRequest
	// AddOns are all add-ons.
	AddOns []*addonv1beta1.ManagedClusterAddOn
}

// Orphans finds what earlier drivers left on the hub.
func Orphans(ctx context.Context, c client.Client, f Filter, now time.Time) ([]Orphan, error) {
	var (
		hub HubObjects
		err error
	)
	// The add-ons last: what is made meanwhile belongs to an add-on that the
	// list knows.
	if hub.Infrastructure, err = tokenObjects(ctx, c); err != nil {
		return nil, err
	}
	if hub.Requests, err = Requests(ctx, c); err != nil {
		return nil, err
	}
	if hub.AddOns, err = Objects(ctx, c, Filter{}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(hub.Orphans(now), func(l Orphan) bool {
		return len(f.Clusters) > 0 && !slices.Contains(f.Clusters, l.Cluster) ||
			len(f.Names) > 0 && !slices.Contains(f.Names, l.AddOn)
	}), nil
}

// Orphans evaluates the objects. It is pure.
func (h HubObjects) Orphans(now time.Time) []Orphan {
	known := map[types.NamespacedName]*addonv1beta1.ManagedClusterAddOn{}
	for _, obj := range h.AddOns {
		known[client.ObjectKeyFromObject(obj)] = obj
	}
	var out []Orphan
	for _, obj := range h.Infrastructure {
		out = append(out, unusedObject(obj, known, now)...)
	}
	for i := range h.Requests {
		out = append(out, unusedRequest(&h.Requests[i], known, now)...)
	}
	for _, obj := range h.AddOns {
		out = append(out, staleConditions(obj, now)...)
	}
	slices.SortStableFunc(out, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.AddOn, b.AddOn))
	})
	return out
}

// tokenObjects returns what carries the labels of the token driver.
func tokenObjects(ctx context.Context, c client.Client) ([]client.Object, error) {
	selector := client.MatchingLabels{names.LabelTokenInfrastructure: "true"}
	var (
		accounts corev1.ServiceAccountList
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
		out      []client.Object
	)
	for _, list := range []client.ObjectList{&accounts, &roles, &bindings} {
		if err := c.List(ctx, list, selector, client.HasLabels{names.LabelAddOnTokenName}); err != nil {
			return nil, fmt.Errorf("token infrastructure: %w", err)
		}
	}
	for i := range bindings.Items {
		out = append(out, &bindings.Items[i])
	}
	for i := range roles.Items {
		out = append(out, &roles.Items[i])
	}
	for i := range accounts.Items {
		out = append(out, &accounts.Items[i])
	}
	return out, nil
}

// unusedObject evaluates an object of the token driver. One whose name is not that
// of its kind for its add-on belongs to another controller, even if labels say otherwise.
func unusedObject(obj client.Object, known map[types.NamespacedName]*addonv1beta1.ManagedClusterAddOn, now time.Time) []Orphan {
	cluster, addOn := obj.GetNamespace(), obj.GetLabels()[names.LabelAddOnTokenName]
	kind, ours := "", []string{names.AddOnTokenRole(addOn)}
	switch obj.(type) {
	case *corev1.ServiceAccount:
		kind, ours = "ServiceAccount", names.AddOnServiceAccounts(cluster, addOn)
	case *rbacv1.Role:
		kind = "Role"
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	}
	why := whyUnused(known[types.NamespacedName{Namespace: cluster, Name: addOn}], kind, obj.GetName(), now)
	if !slices.Contains(ours, obj.GetName()) || !obj.GetDeletionTimestamp().IsZero() || why == "" {
		return nil
	}
	return []Orphan{{Kind: kind, Namespace: cluster, Name: obj.GetName(), Cluster: cluster, AddOn: addOn, Why: why, Object: obj}}
}

// whyUnused says why an add-on does not need an object of the token driver; ""
// is that it does, or that it is not known yet.
func whyUnused(addOn *addonv1beta1.ManagedClusterAddOn, kind, name string, now time.Time) string {
	if addOn == nil {
		return "the add-on is gone"
	}
	config := KubeClient(addOn)
	switch {
	case len(addOn.Status.Registrations) == 0:
		return "" // its hub controller may be about to say
	case config == nil:
		return "the add-on uses no kubeClient credential"
	case config.Driver == string(driver.CSR):
		if settled(addOn, now) {
			return "the add-on uses certificates"
		}
		return "" // it may still use its token
	case config.Driver != string(driver.Token) || kind != "ServiceAccount":
		return ""
	}
	return otherAccount(addOn, config, name)
}

// otherAccount says that an add-on uses another ServiceAccount than the one
// called name, if that is so.
func otherAccount(addOn *addonv1beta1.ManagedClusterAddOn, config *addonv1beta1.KubeClientConfig, name string) string {
	_, used, ok := names.ParseServiceAccountUser(config.Subject.User)
	ready := apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionTokenInfrastructureReady)
	if !ok || ready == nil || used == name {
		return ""
	}
	if account, ok := names.ParseTokenServiceAccount(ready.Message); !ok || account.Name != used {
		return ""
	}
	return "the add-on uses ServiceAccount " + used
}

// unusedRequest evaluates a CSR of an add-on.
func unusedRequest(obj *certificatesv1.CertificateSigningRequest, known map[types.NamespacedName]*addonv1beta1.ManagedClusterAddOn, now time.Time) []Orphan {
	cluster, addOn := obj.Labels[names.LabelClusterName], obj.Labels[names.LabelAddOnName]
	if !strings.HasPrefix(obj.Name, "addon-") {
		return nil
	}
	l := Orphan{Kind: "CertificateSigningRequest", Name: obj.Name, Cluster: cluster, AddOn: addOn, Object: obj}
	live := known[types.NamespacedName{Namespace: cluster, Name: addOn}]
	state := approval.StateOf(obj)
	age := now.Sub(obj.CreationTimestamp.Time)
	switch {
	case live == nil:
		l.Why = "the add-on is gone"
	case state != approval.Pending && state != approval.Approved && age > settledFor:
		l.Why = fmt.Sprintf("it was %s a while ago", strings.ToLower(string(state)))
	case obj.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && usesTokens(live):
		l.Why = "the add-on uses tokens"
	default:
		return nil
	}
	return []Orphan{l}
}

// settled reports whether an add-on with certificates has no Pods that still use a token.
func settled(obj *addonv1beta1.ManagedClusterAddOn, now time.Time) bool {
	stored := apimeta.FindStatusCondition(obj.Status.Conditions, names.ConditionCertificateRotated)
	return driver.SwitchGraceLeft(stored, now) == 0
}

func usesTokens(obj *addonv1beta1.ManagedClusterAddOn) bool {
	config := KubeClient(obj)
	return config != nil && config.Driver == string(driver.Token)
}

// staleConditions returns the conditions about a driver that is not in use.
// While a driver is not declared, nothing is known to be stale.
func staleConditions(obj *addonv1beta1.ManagedClusterAddOn, now time.Time) []Orphan {
	var (
		stale []string
		why   string
	)
	config := KubeClient(obj)
	signers := slices.ContainsFunc(obj.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
		return r.Type == addonv1beta1.CustomSigner
	})
	switch {
	case config != nil && config.Driver == string(driver.Token) && !signers:
		stale, why = []string{names.ConditionCertificateRotated}, "the add-on uses no certificate"
	case config != nil && config.Driver == string(driver.CSR) && settled(obj, now), config == nil && signers:
		stale = []string{names.ConditionTokenInfrastructureReady, names.ConditionAddOnTokenRefreshed, names.ConditionTokenRefreshed}
		why = "the add-on uses no token"
	}
	var out []Orphan
	for _, kind := range stale {
		if apimeta.FindStatusCondition(obj.Status.Conditions, kind) != nil {
			out = append(out, Orphan{
				Kind: "ManagedClusterAddOn", Namespace: obj.Namespace, Name: obj.Name, Cluster: obj.Namespace,
				AddOn: obj.Name, Condition: kind, Why: "condition " + kind + ": " + why, Object: obj,
			})
		}
	}
	return out
}
