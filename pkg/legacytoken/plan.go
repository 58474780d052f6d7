package legacytoken

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Action is a command's action on a Secret.
type Action int

// The actions.
const (
	// ActionNone means that nothing needs to be done.
	ActionNone Action = iota
	// ActionApply changes it.
	ActionApply
	// ActionReject does not change it, although it was selected.
	ActionReject
)

// Plan is an action and, unless it changes the Secret, its reason.
type Plan struct {
	Action Action
	Reason string
}

func nothing(format string, args ...any) Plan {
	return Plan{Action: ActionNone, Reason: fmt.Sprintf(format, args...)}
}

func reject(format string, args ...any) Plan {
	return Plan{Action: ActionReject, Reason: fmt.Sprintf(format, args...)}
}

// Quarantines reports whether an API server of a version refuses tokens with the
// label: from 1.29 on (https://kep.k8s.io/2799).
func Quarantines(serverVersion string) bool {
	v, err := version.ParseGeneric(serverVersion)
	return err == nil && v.AtLeast(version.MajorMinor(1, 29))
}

// PlanQuarantine decides whether to quarantine a token. Only force does so if the token
// is in use, or if that is unknown.
func (o Observation) PlanQuarantine(t *Token, force bool) Plan {
	switch {
	case t.QuarantinedSince != "":
		return nothing("quarantined since %s", t.QuarantinedSince)
	case force || t.ServiceAccountState == AccountMissing:
		return Plan{Action: ActionApply}
	case len(t.UsedBy) > 0 || len(t.PullSecrets) > 0:
		return o.refuseUsed(t)
	case o.usedRecently(t):
		return reject("last used on %s, less than %s ago", t.LastUsed, days(o.Recent))
	case len(o.unlistedUsers()) > 0:
		return reject("you are not allowed to list %s, which may use it", strings.Join(o.unlistedUsers(), ", "))
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
		return Plan{Action: ActionApply}
	case !tracked:
		return reject("its use is unknown: the API server does not report that it records the use of tokens")
	case watched < o.Recent:
		return reject("its use has been recorded only since %s, less than %s ago", since, days(o.Recent))
	}
	return Plan{Action: ActionApply}
}

// refuseUsed refuses a token that has users in the cluster.
func (o Observation) refuseUsed(t *Token) Plan {
	if len(t.UsedBy) > 0 {
		return reject("used by %s", strings.Join(t.UsedBy, ", "))
	}
	return reject("its token is the password in the pull secret %s; migrate that first", t.PullSecrets[0])
}

// PlanRestore decides whether a token is to be taken out of quarantine.
func (o Observation) PlanRestore(t *Token) Plan {
	if t.QuarantinedSince == "" {
		return nothing("not quarantined")
	}
	return Plan{Action: ActionApply}
}

// PlanDelete decides whether a token Secret is to be deleted: one that was in
// quarantine for a number of whole days, and that nothing uses unless force is set.
func (o Observation) PlanDelete(t *Token, olderThan int, force bool) Plan {
	passed, known := o.daysSince(t.QuarantinedSince)
	switch {
	case t.QuarantinedSince == "":
		return reject("not quarantined")
	case !known:
		return reject("invalid time of quarantine %q; restore and quarantine it again", t.QuarantinedSince)
	case olderThan > 0 && passed <= olderThan: // The day itself was no whole one.
		return reject("quarantined since %s, for less than %s", t.QuarantinedSince, days(olderThan))
	case force || t.ServiceAccountState == AccountMissing:
		return Plan{Action: ActionApply}
	case usedInQuarantine(t):
		return reject("a client still used it on %s", t.LastUsed)
	case len(t.UsedBy) > 0 || len(t.PullSecrets) > 0:
		return o.refuseUsed(t)
	}
	return Plan{Action: ActionApply}
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
