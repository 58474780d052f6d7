package origin

import (
	"fmt"
	"slices"
	"strings"
)

// Installation is a hub or an agent that another product runs.
type Installation struct {
	// Operators are the Deployments of its operator.
	Operators []Deployment
	// Components are the Deployments of what the operator installs.
	Components []Deployment
	// Webhooks are its webhook configurations, as kind/name.
	Webhooks []string

	// title names the installation, command is our command that would replace it.
	title, command string
}

// Runs reports whether anything of it is deployed; otherwise only webhook
// configurations are left.
func (i *Installation) Runs() bool { return len(i.Operators)+len(i.Components) > 0 }

// Writes reports whether anything of it would compete with an operator of ours. Its
// webhook servers only answer, unless ours would be merged with one.
func (i *Installation) Writes() bool {
	return len(i.Operators) > 0 || slices.ContainsFunc(i.Components, func(d Deployment) bool { return !d.Answers() || d.Replaced() })
}

// Version is the release that runs, as the tags of the images have it; empty if they
// do not.
func (i *Installation) Version() string {
	for _, d := range slices.Concat(i.Operators, i.Components) {
		if version := d.Version(); version != "" {
			return version
		}
	}
	return ""
}

// Product is its name with its release, such as "OCM v1.3.1"; empty for nothing.
func (i *Installation) Product() string {
	if i == nil {
		return ""
	}
	return strings.TrimSpace("OCM " + i.Version())
}

// String names what was found.
func (i *Installation) String() string {
	if !i.Runs() {
		return "webhook configurations of a hub that is gone"
	}
	shown := i.Operators
	if len(shown) == 0 {
		shown = i.Components[:1]
	}
	texts := make([]string, len(shown))
	for j, d := range shown {
		texts[j] = d.String()
	}
	return fmt.Sprintf("the %s of another product: %s", i.title, strings.Join(texts, ", "))
}

// Loss says what our command would destroy.
func (i *Installation) Loss() string {
	var losses []string
	if len(i.Operators) > 0 {
		losses = append(losses, "replace its operator")
	}
	replaced, gone := i.split()
	if len(replaced) > 0 {
		losses = append(losses, "replace "+strings.Join(replaced, ", "))
	}
	if len(gone) > 0 {
		losses = append(losses, "end "+strings.Join(gone, ", ")+", which this release does not run")
	}
	if len(i.Webhooks) > 0 {
		losses = append(losses, "leave "+strings.Join(i.Webhooks, ", ")+" without the Service that they call, so that the API server rejects every write of ManagedClusters and ManifestWorks")
	}
	if !i.Runs() {
		return "The API server rejects every write of ManagedClusters and ManifestWorks while the Services that they call do not exist"
	}
	return fmt.Sprintf("%s would %s", i.command, strings.Join(losses, "; "))
}

// split returns the names of the components that ours would replace, and of
// those that would be gone.
func (i *Installation) split() (replaced, gone []string) {
	for _, c := range i.Components {
		if c.Replaced() {
			replaced = append(replaced, c.Name)
			continue
		}
		gone = append(gone, c.Name)
	}
	return replaced, gone
}

// Try says what to do instead.
func (i *Installation) Try() string {
	if !i.Runs() {
		return "restore that hub, or delete them: kubectl delete " + strings.Join(i.Webhooks, " ")
	}
	return fmt.Sprintf("manage this %[1]s with %[2]s, or remove it with that first; %[3]s --take-over replaces it in place, and with --dry-run shows how; to use another cluster, name it with --context", i.title, i.Manager(), i.command)
}

// Manager describes the manager of the installation.
func (i *Installation) Manager() string {
	for _, d := range slices.Concat(i.Operators, i.Components) {
		if d.Tool != "" {
			return d.Tool
		}
	}
	return "the tool that installed it"
}
