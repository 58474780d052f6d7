package serviceaccount

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Selection says which ServiceAccounts have a pull secret where no annotation
// does. A selector that is nil or empty is not there; of two, both must match;
// without any, none is selected, or all.
type Selection struct {
	All             bool
	Namespaces      labels.Selector
	ServiceAccounts labels.Selector
}

// Selects decides about a ServiceAccount. Its own annotation decides, else that
// of its namespace, else the selectors.
func (s Selection) Selects(account, namespace metav1.Object) bool {
	for _, object := range []metav1.Object{account, namespace} {
		if wanted, err := strconv.ParseBool(object.GetAnnotations()[names.AnnotationPullSecret]); err == nil {
			return wanted
		}
	}
	if absent(s.Namespaces) && absent(s.ServiceAccounts) {
		return s.All
	}
	return matches(s.Namespaces, namespace) && matches(s.ServiceAccounts, account)
}

func absent(s labels.Selector) bool { return s == nil || s.Empty() }

func matches(s labels.Selector, object metav1.Object) bool {
	return absent(s) || s.Matches(labels.Set(object.GetLabels()))
}
