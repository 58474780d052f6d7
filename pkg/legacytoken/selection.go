package legacytoken

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// MissingError reports names of which no legacy token Secret exists.
type MissingError struct{ Names []types.NamespacedName }

// Error implements error.
func (e *MissingError) Error() string {
	names := make([]string, len(e.Names))
	for i, name := range e.Names {
		names[i] = name.String()
	}
	return "there is no legacy token Secret " + strings.Join(names, ", ")
}

// Choose leaves the named tokens in the inventory, in the order of the names. The error about
// names that do not exist is a *MissingError.
func (i *Inventory) Choose(names []types.NamespacedName) error {
	var found []*Token
	var missing []types.NamespacedName
	for _, name := range names {
		n := slices.IndexFunc(i.Tokens, func(t *Token) bool { return t.Key() == name })
		if n < 0 {
			missing = append(missing, name)
			continue
		}
		found = append(found, i.Tokens[n])
	}
	i.Tokens = found
	if len(missing) > 0 {
		return &MissingError{Names: missing}
	}
	return nil
}

// Limit leaves the tokens with one of the assessments in the inventory; none limit nothing.
func (i *Inventory) Limit(to []Assessment) {
	if len(to) > 0 {
		i.Tokens = slices.DeleteFunc(i.Tokens, func(t *Token) bool { return !slices.Contains(to, t.Assessment) })
	}
}

// ScopeOf returns the scope of named Secrets.
func ScopeOf(names []types.NamespacedName) Scope {
	var scope Scope
	for _, name := range names {
		if !slices.Contains(scope.Namespaces, name.Namespace) {
			scope.Namespaces = append(scope.Namespaces, name.Namespace)
		}
	}
	return scope
}
