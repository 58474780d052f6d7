package install

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a finding stops the installation.
type Severity string

// The severities.
const (
	// Fatal stops.
	Fatal Severity = "error"
	// Warning does not.
	Warning Severity = "warning"
)

// Finding is the result of a check that found a problem.
type Finding struct {
	// Check names the check, for --skip-check.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Message is one sentence about the problem.
	Message string `json:"message"`
	// Try is the advice to the user.
	Try string `json:"try,omitempty"`
}

// The checks, by the names that users skip them with.
const (
	CheckVersion     = "kubernetes-version"
	CheckPermissions = "permissions"
	CheckClusterKind = "cluster-kind"
	CheckExisting    = "existing-installation"
	CheckDowngrade   = "downgrade"
	CheckTerminating = "terminating"
	CheckClusterName = "cluster-name"
	CheckHubAddress  = "hub-address"
	CheckDriver      = "registration-driver"
	CheckNamespaces  = "namespaces"
	CheckWork        = "work-permissions"
	CheckImage       = "image"
)

// CheckOther is about installations of other products. It cannot be skipped:
// nothing that would be installed over one works.
const CheckOther = "other-product"

// CheckChanges is about what a take-over changes. Changes are accepted one by one
// instead.
const CheckChanges = "changes"

// Checks returns the names of all checks that can be skipped.
func Checks() []string {
	return []string{
		CheckVersion, CheckPermissions, CheckClusterKind, CheckExisting, CheckDowngrade,
		CheckTerminating, CheckClusterName, CheckHubAddress, CheckDriver, CheckNamespaces, CheckWork, CheckImage,
	}
}

func (f Finding) skippable() bool { return f.Check != CheckOther && f.Check != CheckChanges }

// PreflightError says that checks failed. It lists all of them.
type PreflightError struct{ Findings []Finding }

// Skippable reports whether a user can make every finding a warning.
func (e *PreflightError) Skippable() bool {
	return !slices.ContainsFunc(e.Findings, func(f Finding) bool { return !f.skippable() })
}

// Error implements error.
func (e *PreflightError) Error() string {
	var lines []string
	for _, f := range e.Findings {
		line := fmt.Sprintf("[%s] %s", f.Check, f.Message)
		if f.Try != "" {
			line += "\n      " + f.Try
		}
		lines = append(lines, line)
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d checks failed:\n    %s", len(lines), strings.Join(lines, "\n    "))
}

// Sift drops what the user wants to skip and returns the warnings, and an
// error with all fatal findings if there are any.
func Sift(findings []Finding, skip []string) ([]Finding, error) {
	var warnings, fatal []Finding
	for _, f := range findings {
		switch {
		case slices.Contains(skip, f.Check) && f.skippable(), f.Severity == Warning:
			f.Severity = Warning
			warnings = append(warnings, f)
		default:
			fatal = append(fatal, f)
		}
	}
	if len(fatal) > 0 {
		return warnings, &PreflightError{Findings: fatal}
	}
	return warnings, nil
}
