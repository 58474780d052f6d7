package exchange

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
)

// explanationKind is the kind of an explanation in the machine formats.
const explanationKind = "TokenExchangeExplanation"

// The columns of the text.
const (
	markWidth  = 6
	checkWidth = 23
)

// printExplanation prints the steps and the decision.
func printExplanation(w io.Writer, e *explanation.Explanation) error {
	_, err := io.WriteString(w, table(e)+"\n"+cli.Fold(summary(e), "")+"\n")
	return err
}

// table returns a line for each step.
func table(e *explanation.Explanation) string {
	var b strings.Builder
	hanging := strings.Repeat(" ", markWidth+checkWidth+1)
	for _, s := range e.Steps {
		mark := map[explanation.Outcome]string{explanation.Passed: "ok", explanation.Failed: "FAIL", explanation.Skipped: "-"}[s.Outcome]
		name := s.Check
		if len(name) > checkWidth { // A rule of a cluster with a long name.
			_, _ = fmt.Fprintf(&b, "%-*s%s\n", markWidth, mark, name)
			mark, name = "", ""
		}
		head := fmt.Sprintf("%-*s%-*s ", markWidth, mark, checkWidth, name)
		if s.Detail == "" {
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			continue
		}
		b.WriteString(head + cli.Fold(hanging+s.Detail, hanging)[len(hanging):] + "\n")
	}
	return b.String()
}

func summary(e *explanation.Explanation) string {
	who := "The token"
	if e.Workload != nil {
		who = fmt.Sprintf("%s/%s of cluster %s", e.Workload.Namespace, e.Workload.Name, e.Cluster)
	}
	if !e.Allowed {
		return fmt.Sprintf("Refused: %s (HTTP %d). %s: %s.", e.Reason, e.Status, who, e.Detail)
	}
	life := time.Duration(e.Target.ExpirationSeconds) * time.Second
	return fmt.Sprintf("Allowed by %s: %s gets a token of ServiceAccount %s/%s of the hub for %s.",
		e.Rule, who, e.Target.Namespace, e.Target.Name, life)
}
