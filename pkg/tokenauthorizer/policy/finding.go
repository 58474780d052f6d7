package policy

import (
	"fmt"
	"slices"
)

// Severity is how bad a finding is.
type Severity string

// The severities. An Error keeps a configuration from being loaded; a Warning
// is loaded and opens more than most users intend; Info is worth knowing.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Finding is one thing about a configuration that a person should look at.
type Finding struct {
	Severity Severity `json:"severity"`
	// Path is where it is: "clusters[0].allow[1].mapTo".
	Path string `json:"path"`
	// Message is one sentence without a period.
	Message string `json:"message"`
	// Fix is the advice, in the imperative.
	Fix string `json:"fix,omitempty"`
}

// String is the finding in one line.
func (f Finding) String() string {
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// Failed reports whether there is an Error among findings.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// report collects findings below a path.
type report struct {
	path     string
	findings []Finding
}

func (r *report) add(severity Severity, field, fix, format string, args ...any) {
	path := r.path
	switch {
	case path == "":
		path = field
	case field != "":
		path += "." + field
	}
	r.findings = append(r.findings, Finding{Severity: severity, Path: path, Message: fmt.Sprintf(format, args...), Fix: fix})
}
