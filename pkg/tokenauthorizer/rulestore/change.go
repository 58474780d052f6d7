package rulestore

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Change is a change of the rules on a hub.
type Change struct {
	// Object includes the change. Before does not; it is nil if there was no object.
	Object, Before client.Object
	// Config is the configuration with the change.
	Config *config.Config
}

// Changed reports whether the change is one.
func (c Change) Changed() bool {
	return c.Before == nil || !apiequality.Semantic.DeepEqual(c.Before, c.Object)
}

// kind returns the kind of the object.
func (c Change) kind() string {
	if c.Object.GetNamespace() == "" {
		return "TokenExchangeDefaults"
	}
	return "TokenExchangePolicy"
}

// String names the object.
func (c Change) String() string {
	if c.Object.GetNamespace() == "" {
		return c.kind() + " " + c.Object.GetName()
	}
	return c.kind() + " " + c.Object.GetNamespace() + "/" + c.Object.GetName()
}

// YAML returns the fields of the object that users write.
func (c Change) YAML() ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	metadata := map[string]any{"name": c.Object.GetName()}
	if namespace := c.Object.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": c.kind(), "metadata": metadata, "spec": fields["spec"],
	})
}

// Warnings returns what is risky about the rules of a cluster.
func (c Change) Warnings(cluster string) []policy.Finding {
	entry, ok := c.Config.Cluster(cluster)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(c.Config.Lint(), func(f policy.Finding) bool {
		return f.Severity != policy.Warning || !strings.HasPrefix(f.Path, entry.Spec.Path)
	})
}

// ForAccounts returns a copy of the rule per namespace, or pattern of namespaces, of the
// ServiceAccounts: a rule applies to all of its ServiceAccounts in all of its namespaces.
func ForAccounts(rule v1alpha1.Rule, accounts []types.NamespacedName) []v1alpha1.Rule {
	var out []v1alpha1.Rule
	for _, account := range accounts {
		i := slices.IndexFunc(out, func(r v1alpha1.Rule) bool { return r.Namespaces[0] == account.Namespace })
		if i < 0 {
			i = len(out)
			out = append(out, rule)
			out[i].Namespaces = []string{account.Namespace}
		}
		out[i].ServiceAccounts = append(out[i].ServiceAccounts, account.Name)
	}
	return out
}
