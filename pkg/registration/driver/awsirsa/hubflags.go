package awsirsa

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Patterns are regular expressions for the ARNs of EKS clusters.
type Patterns []*regexp.Regexp

// ParsePatterns compiles regular expressions in Go's syntax.
func ParsePatterns(expressions []string) (Patterns, error) {
	var patterns Patterns
	var errs []error
	for _, expression := range expressions {
		// The expression must be valid by itself: it could close the group otherwise.
		if _, err := regexp.Compile(expression); err != nil {
			errs = append(errs, fmt.Errorf("%q is no regular expression: %w", expression, err))
			continue
		}
		patterns = append(patterns, regexp.MustCompile(`\A(?:`+expression+`)\z`))
	}
	return patterns, errors.Join(errs...)
}

// Match reports whether a pattern matches the whole of arn.
func (p Patterns) Match(arn string) bool {
	for _, pattern := range p {
		if pattern.MatchString(arn) {
			return true
		}
	}
	return false
}

// Limits of tags; AWS allows 50 on a role, and the driver needs up to six.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html
const (
	maxTags     = 44
	maxTagKey   = 128
	maxTagValue = 256
)

// ParseTags reads tags that are written as key=value. Those that AWS, or the
// driver itself, sets cannot be chosen.
func ParseTags(items []string) (cloud.Tags, error) {
	tags := cloud.Tags{}
	var errs []error
	for _, item := range items {
		key, value, ok := strings.Cut(item, "=")
		_, twice := tags[key]
		switch {
		case !ok || key == "" || value == "" || strings.Contains(value, "="):
			errs = append(errs, fmt.Errorf("invalid tag %q: must be key=value", item))
		case len(key) > maxTagKey || len(value) > maxTagValue:
			errs = append(errs, fmt.Errorf("%.60q...: AWS takes keys of up to %d and values of up to %d characters", item, maxTagKey, maxTagValue))
		case twice:
			errs = append(errs, fmt.Errorf("duplicate tag key %q", item))
		case reserved(key):
			errs = append(errs, fmt.Errorf("invalid tag %q: reserved for AWS or the hub", item))
		default:
			tags[key] = value
		}
	}
	if len(tags) > maxTags {
		errs = append(errs, fmt.Errorf("too many tags: %d, and a role can have %d", len(tags), maxTags))
	}
	return tags, errors.Join(errs...)
}

// reserved reports whether a tag is not for choosing. IAM compares keys regardless
// of case.
func reserved(key string) bool {
	key = strings.ToLower(key)
	switch key {
	case identity.TagHub, identity.TagRoleID, "hub_cluster_account_id", "hub_cluster_name", "managed_cluster_account_id", "managed_cluster_name":
		return true
	}
	return strings.HasPrefix(key, "aws:")
}
