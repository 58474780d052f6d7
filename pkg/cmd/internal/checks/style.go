package checks

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

// style is how a report looks where it is printed.
type style struct {
	// terminal folds messages, colored shows the status in color as well.
	terminal, colored bool
}

// styleOf is the style for stdout, with colors where kubectl would use them: on a terminal
// that is not dumb, unless NO_COLOR is set.
func styleOf(env cli.Env) style {
	return style{terminal: printers.IsTerminal(env.Out), colored: printers.AllowsColorOutput(env.Out)}
}

// width is that of the column with the status.
const width = 8

// status is the status in its column.
func (s style) status(status finding.Status) string {
	text := fmt.Sprintf("%-*s", width, status)
	code, ok := map[finding.Status]int{finding.OK: 32, finding.Warning: 33, finding.Failed: 31, finding.Unknown: 35, finding.Skipped: 2}[status]
	if !s.colored || !ok {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text)
}
