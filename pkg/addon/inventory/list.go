package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Filter chooses add-ons; an empty list is all.
type Filter struct {
	Clusters []string
	Names    []string
	// Selector selects add-ons by their labels; nil selects all.
	Selector labels.Selector

	// at is the only one; zero for any.
	at client.ObjectKey
}

// At chooses the add-on of a namespace and name among those that the filter chooses, and
// with the zero key all of them.
func (f Filter) At(key client.ObjectKey) Filter {
	f.at = key
	return f
}

func (f Filter) matches(obj *addonv1beta1.ManagedClusterAddOn) bool {
	return (len(f.Clusters) == 0 || slices.Contains(f.Clusters, obj.Namespace)) &&
		(len(f.Names) == 0 || slices.Contains(f.Names, obj.Name))
}

// Warn reports what a list lacks, as a format and its arguments.
type Warn func(format string, args ...any)

// List describes the add-ons that the filter chooses, at a time. Without permission to read
// requests it warns and describes the add-ons without them.
func List(ctx context.Context, c client.Client, f Filter, now time.Time, warn Warn) ([]AddOn, error) {
	objs, err := Objects(ctx, c, f)
	if err != nil {
		return nil, err
	}
	facts := Facts{Now: now}
	if len(objs) > 0 {
		if facts.Requests, err = Requests(ctx, c); err != nil {
			warn("requests are not shown: %v", err)
		}
	}
	out := make([]AddOn, len(objs))
	for i, obj := range objs {
		out[i] = Describe(obj, facts)
	}
	return out, nil
}

// Objects returns the add-ons that the filter chooses, by cluster and name.
func Objects(ctx context.Context, c client.Client, f Filter) ([]*addonv1beta1.ManagedClusterAddOn, error) {
	var (
		list    addonv1beta1.ManagedClusterAddOnList
		options []client.ListOption
	)
	switch {
	case f.at.Namespace != "":
		options = append(options, client.InNamespace(f.at.Namespace))
	case len(f.Clusters) == 1:
		options = append(options, client.InNamespace(f.Clusters[0]))
	}
	if f.Selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: f.Selector})
	}
	if f.at.Name != "" {
		options = append(options, client.MatchingFields{metav1.ObjectNameField: f.at.Name})
	}
	if err := c.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("add-ons: %w", err)
	}
	var out []*addonv1beta1.ManagedClusterAddOn
	for i := range list.Items {
		if f.matches(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *addonv1beta1.ManagedClusterAddOn) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Requests returns the CertificateSigningRequests of add-ons.
func Requests(ctx context.Context, c client.Client) ([]certificatesv1.CertificateSigningRequest, error) {
	var list certificatesv1.CertificateSigningRequestList
	if err := c.List(ctx, &list, client.HasLabels{names.LabelClusterName, names.LabelAddOnName}); err != nil {
		return nil, fmt.Errorf("requests of add-ons: %w", err)
	}
	return list.Items, nil
}
