package legacytoken

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Step says what a command does with a Secret.
type Step int

// The steps.
const (
	// StepNone leaves the Secret alone because nothing is to be done.
	StepNone Step = iota
	// StepDo changes it.
	StepDo
	// StepRefuse leaves it alone although it was meant.
	StepRefuse
)

// Plan is a step and, unless the Secret is changed, the reason for it.
type Plan struct {
	Step   Step
	Reason string
}

func nothing(format string, args ...any) Plan {
	return Plan{Step: StepNone, Reason: fmt.Sprintf(format, args...)}
}

func refuse(format string, args ...any) Plan {
	return Plan{Step: StepRefuse, Reason: fmt.Sprintf(format, args...)}
}

// Quarantines reports whether an API server of a version refuses tokens with the
// label: from 1.29 on (https://kep.k8s.io/2799).
func Quarantines(serverVersion string) bool {
	v, err := version.ParseGeneric(serverVersion)
	return err == nil && v.AtLeast(version.MajorMinor(1, 29))
}

// PlanQuarantine decides whether a token is to be quarantined. Only force does it
// to one that is in use, or of which that is not known.
func (o Observation) PlanQuarantine(t *Token, force bool) Plan {
	switch {
	case t.QuarantinedSince != "":
		return nothing("quarantined since %s", t.QuarantinedSince)
	case force || t.ServiceAccountState == AccountMissing:
		return Plan{Step: StepDo}
	case len(t.UsedBy) > 0 || len(t.PullSecrets) > 0:
		return o.refuseUsed(t)
	case o.usedRecently(t):
		return refuse("last used on %s, less than %s ago", t.LastUsed, days(o.Recent))
	case len(o.unlistedUsers()) > 0:
		return refuse("you may not list %s, which may use it", strings.Join(o.unlistedUsers(), ", "))
	}
	return o.planUnused(t)
}

// planUnused decides about a token without a recent use: whether the record is long
// enough to say so.
func (o Observation) planUnused(t *Token) Plan {
	since, tracked := o.watchedSince(t)
	watched, _ := o.daysSince(since)
	switch {
	case t.LastUsed != "" || o.Recent == 0:
		return Plan{Step: StepDo}
	case !tracked:
		return refuse("whether it was used is not known: the API server does not say that it records the use of tokens")
	case watched < o.Recent:
		return refuse("its use has been recorded only since %s, less than %s ago", since, days(o.Recent))
	}
	return Plan{Step: StepDo}
}

// refuseUsed refuses a token that has users in the cluster.
func (o Observation) refuseUsed(t *Token) Plan {
	if len(t.UsedBy) > 0 {
		return refuse("used by %s", strings.Join(t.UsedBy, ", "))
	}
	return refuse("its token is the password in the pull secret %s; migrate that first", t.PullSecrets[0])
}

// PlanRestore decides whether a token is to be taken out of quarantine.
func (o Observation) PlanRestore(t *Token) Plan {
	if t.QuarantinedSince == "" {
		return nothing("not quarantined")
	}
	return Plan{Step: StepDo}
}

// PlanDelete decides whether a token Secret is to be deleted: one that was in
// quarantine for a number of whole days, and that nothing uses unless force is set.
func (o Observation) PlanDelete(t *Token, olderThan int, force bool) Plan {
	passed, known := o.daysSince(t.QuarantinedSince)
	switch {
	case t.QuarantinedSince == "":
		return refuse("not quarantined")
	case !known:
		return refuse("since when it is quarantined cannot be read from %q; restore and quarantine it", t.QuarantinedSince)
	case olderThan > 0 && passed <= olderThan: // The day itself was no whole one.
		return refuse("quarantined since %s, for less than %s", t.QuarantinedSince, days(olderThan))
	case force || t.ServiceAccountState == AccountMissing:
		return Plan{Step: StepDo}
	case usedInQuarantine(t):
		return refuse("a client still presents it, last on %s", t.LastUsed)
	case len(t.UsedBy) > 0 || len(t.PullSecrets) > 0:
		return o.refuseUsed(t)
	}
	return Plan{Step: StepDo}
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
