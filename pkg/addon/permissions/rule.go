package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RuleError reports a rule that cannot be used.
type RuleError struct {
	// Text is the rule as the user wrote it.
	Text string
	// Problem completes a sentence that begins with the text.
	Problem string
}

// Error implements error.
func (e *RuleError) Error() string { return fmt.Sprintf("%q %s", e.Text, e.Problem) }

// ParseRule reads VERBS:RESOURCES[:NAMES]. All resources of a rule are of one API group.
// The error is a *RuleError.
func ParseRule(text string) (rbacv1.PolicyRule, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return rbacv1.PolicyRule{}, &RuleError{text, "is not VERBS:RESOURCES[:NAMES], such as get,list:configmaps"}
	}
	rule := rbacv1.PolicyRule{Verbs: strings.Split(parts[0], ",")}
	for resource := range strings.SplitSeq(parts[1], ",") {
		resource, sub, hasSub := strings.Cut(resource, "/")
		resource, group, _ := strings.Cut(resource, ".")
		if hasSub {
			resource += "/" + sub
		}
		rule.Resources = append(rule.Resources, resource)
		if !slices.Contains(rule.APIGroups, group) {
			rule.APIGroups = append(rule.APIGroups, group)
		}
	}
	if len(parts) == 3 {
		rule.ResourceNames = strings.Split(parts[2], ",")
	}
	if problem := problemOf(rule); problem != "" {
		return rbacv1.PolicyRule{}, &RuleError{text, problem}
	}
	return rule, nil
}

// problemOf returns why a rule cannot be used, or "".
func problemOf(rule rbacv1.PolicyRule) string {
	all := slices.Concat(rule.Verbs, rule.Resources, rule.ResourceNames)
	switch {
	case slices.Contains(all, ""):
		return "has an empty word"
	case len(rule.APIGroups) > 1:
		return "names resources of several API groups; give each group a rule of its own"
	case slices.Contains(all, "*") || rule.APIGroups[0] == "*":
		return "has a wildcard, which grants unlimited permissions; name what the add-on needs"
	case len(rule.ResourceNames) > 0 && slices.Contains(rule.Verbs, "create") && !strings.Contains(rule.Resources[0], "/"):
		return "cannot work: create has no name to compare; give it a rule of its own without names"
	}
	return ""
}
