package diagnose

import (
	"context"
	"strings"
	"unicode"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

// Result is the stable schema of one check.
type Result struct {
	Number int `json:"number"`
	// ID names the check in scripts.
	ID   string `json:"id"`
	Name string `json:"name"`
	finding.Outcome
}

// Report is the stable schema of all checks. It is OK if none failed and none is
// unknown.
type Report struct {
	Target string   `json:"target"`
	OK     bool     `json:"ok"`
	Checks []Result `json:"checks"`

	// Ended is the error of the context if it ended before all checks were made.
	Ended error `json:"-"`
}

// Needs begins the message of a check that was skipped because another one failed.
const Needs = "needs: "

// Run makes the checks in order. A check that could not look, because the caller lacks a
// permission, has a Cause; one that the context left no time for is Unknown.
func Run(ctx context.Context, target string, steps []finding.Step) Report {
	r := Report{Target: target, OK: true}
	broken := ""
	for i, s := range steps {
		res := Result{Number: i + 1, ID: identifier(s.Name), Name: s.Name}
		switch {
		case broken != "":
			res.Outcome = finding.Skip(Needs+"%s", broken)
		case ctx.Err() != nil:
			res.Status, res.Message = finding.Unknown, "the command ended before this check"
		default:
			res.Outcome = s.Run(ctx)
		}
		if res.Status == finding.Failed || res.Status == finding.Unknown {
			r.OK = false
			if s.Needed {
				broken = s.Name
			}
		}
		r.Checks = append(r.Checks, res)
	}
	r.Ended = ctx.Err()
	return r
}

// identifier is the id of a check: its name with dashes between the words.
func identifier(name string) string {
	word := func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.ToLower(strings.Join(strings.FieldsFunc(strings.ReplaceAll(name, "'", ""), word), "-"))
}
