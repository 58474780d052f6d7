package names

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// AnnotationWorkAgent on a Klusterlet leaves the work agent out if it is "false". It
// is ours.
const AnnotationWorkAgent = "open-cluster-management.io/work-agent"

// AnnotationWorkPermissions on a Klusterlet is the WorkPermissions of the work
// agent; without it they are WorkPermissionsAdmin. It is ours.
const AnnotationWorkPermissions = "open-cluster-management.io/work-permissions"

// WorkPermissions are a work agent's permissions on its cluster in addition to its own
// bookkeeping: one of the constants, or the name of a ClusterRole.
type WorkPermissions string

const (
	// WorkPermissionsAdmin is OCM's default. It includes writing any RBAC object,
	// therefore everything in the cluster.
	WorkPermissionsAdmin WorkPermissions = "admin"
	// WorkPermissionsView is the built-in ClusterRole view.
	WorkPermissionsView WorkPermissions = "view"
	// WorkPermissionsNone binds no ClusterRole.
	WorkPermissionsNone WorkPermissions = "none"
)

// ParseWorkPermissions reads the value of AnnotationWorkPermissions.
func ParseWorkPermissions(value string) (WorkPermissions, error) {
	if value == "" {
		return WorkPermissionsAdmin, nil
	}
	if problems := content.IsPathSegmentName(value); len(problems) > 0 {
		return "", fmt.Errorf("%q is not admin, view, none or the name of a ClusterRole: %s", value, problems[0])
	}
	return WorkPermissions(value), nil
}

// ClusterRole is the ClusterRole that the agent is bound to, "" for none.
func (p WorkPermissions) ClusterRole() string {
	if p == WorkPermissionsNone {
		return ""
	}
	return string(p)
}

// Admin reports whether p is OCM's default.
func (p WorkPermissions) Admin() bool { return p == WorkPermissionsAdmin }

// DefaultExecutor is the user as which, to the admission of ManifestWorks, a
// work without an executor runs. The namespace is empty in OCM as well.
// See docs/reference/wire-contract.md#executors.
const DefaultExecutor = serviceAccountPrefix + ":klusterlet-work-sa"
