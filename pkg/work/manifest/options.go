package manifest

import (
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Options are the options of one resource in the manifestConfigs of a work.
type Options struct {
	// Update is how the resource is applied. Its type is set, and for ServerSideApply
	// so are the configuration and the field manager.
	Update workv1.UpdateStrategy
	// Feedback are the values to report.
	Feedback []workv1.FeedbackRule
	// Scrape is how changes of these values are noticed.
	Scrape workv1.FeedbackScrapeType
	// Conditions are the rules that set conditions.
	Conditions []workv1.ConditionRule
}

// OptionsFor returns the options of the resource id. Several manifestConfigs can match;
// for each aspect the first that says something wins. The slices are the work's.
// See docs/reference/wire-contract.md#work-options.
func OptionsFor(work *workv1.ManifestWork, id workv1.ResourceIdentifier) Options {
	var options Options
	var update *workv1.UpdateStrategy
	for i := range work.Spec.ManifestConfigs {
		config := &work.Spec.ManifestConfigs[i]
		if !matches(config.ResourceIdentifier, id) {
			continue
		}
		if update == nil {
			update = config.UpdateStrategy
		}
		if len(options.Feedback) == 0 {
			options.Feedback = config.FeedbackRules
		}
		if options.Scrape == "" {
			options.Scrape = config.FeedbackScrapeType
		}
		if len(options.Conditions) == 0 {
			options.Conditions = config.ConditionRules
		}
	}
	options.Update = withDefaults(update)
	if options.Scrape == "" {
		options.Scrape = workv1.FeedbackPollType
	}
	return options
}

// withDefaults sets what the API server of a hub with an older CRD leaves out.
func withDefaults(strategy *workv1.UpdateStrategy) workv1.UpdateStrategy {
	if strategy == nil || strategy.Type == "" {
		return workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
	}
	update := workv1.UpdateStrategy{Type: strategy.Type}
	if strategy.Type != workv1.UpdateStrategyTypeServerSideApply {
		return update
	}
	config := workv1.ServerSideApplyConfig{}
	if strategy.ServerSideApply != nil {
		config = *strategy.ServerSideApply
	}
	if config.FieldManager == "" {
		config.FieldManager = workv1.DefaultFieldManager
	}
	update.ServerSideApply = &config
	return update
}

func matches(pattern, id workv1.ResourceIdentifier) bool {
	return pattern.Group == id.Group && pattern.Resource == id.Resource &&
		matchesName(pattern.Namespace, id.Namespace) && matchesName(pattern.Name, id.Name)
}

// matchesName reports whether a name matches a pattern in which each * stands for any
// characters, none included.
func matchesName(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return name == pattern
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	middle := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(middle, part)
		if !found {
			return false
		}
		middle = after
	}
	return true
}

// Orphaned reports whether the resource id stays in the cluster when the work is
// deleted or no longer has its manifest. What stays is not owned by the work.
// See docs/reference/wire-contract.md#work-delete-options.
func Orphaned(work *workv1.ManifestWork, id workv1.ResourceIdentifier) bool {
	option := work.Spec.DeleteOption
	if option == nil {
		return false
	}
	switch option.PropagationPolicy {
	case workv1.DeletePropagationPolicyTypeForeground:
		return false
	case workv1.DeletePropagationPolicyTypeOrphan:
		return true
	default: // SelectivelyOrphan.
		return option.SelectivelyOrphan != nil && slices.Contains(option.SelectivelyOrphan.OrphaningRules, workv1.OrphaningRule(id))
	}
}
