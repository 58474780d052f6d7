package check

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// status is how a check ended.
type status string

const (
	ok      status = "ok"
	warn    status = "warning"
	failed  status = "failed"
	skipped status = "skipped"
)

// result is the stable schema of one check.
type result struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Status  status `json:"status"`
	Message string `json:"message,omitempty"`
	// Try is what to do about it.
	Try string `json:"try,omitempty"`
}

// report is the stable schema of all checks.
type report struct {
	Kind   string   `json:"kind"`
	Target string   `json:"target"`
	OK     bool     `json:"ok"`
	Checks []result `json:"checks"`
}

// step is one check. Steps that are needed by the ones behind them end the
// report when they fail.
type step struct {
	name   string
	needed bool
	run    func(context.Context) (status, string, string)
}

// run makes the checks in order.
func run(ctx context.Context, target string, steps []step) report {
	r := report{Kind: "CheckReport", Target: target, OK: true}
	broken := ""
	for i, s := range steps {
		res := result{Number: i + 1, Name: s.name}
		if broken != "" {
			res.Status, res.Message = skipped, "needs: "+broken
		} else {
			res.Status, res.Message, res.Try = s.run(ctx)
		}
		if res.Status == failed {
			r.OK = false
			if s.needed {
				broken = s.name
			}
		}
		r.Checks = append(r.Checks, res)
	}
	return r
}

func (r report) print(w io.Writer) error {
	for _, c := range r.Checks {
		if _, err := fmt.Fprintf(w, "%2d. %-8s %s\n", c.Number, c.Status, c.Name); err != nil {
			return err
		}
		for _, line := range []struct{ label, text string }{{"", c.Message}, {"try: ", c.Try}} {
			if line.text == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "             %s%s\n", line.label, strings.ReplaceAll(line.text, "\n", "\n             ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish prints the report and turns failures into the exit code.
func finish(env cli.Env, out *cli.Output, r report) error {
	var err error
	if out.Machine() {
		err = out.Object(env.Out, r)
	} else {
		err = r.print(env.Out)
	}
	if err != nil {
		return err
	}
	bad := 0
	for _, c := range r.Checks {
		if c.Status == failed {
			bad++
		}
	}
	if bad > 0 {
		return cli.Blockedf("", "%d of %d checks failed", bad, len(r.Checks))
	}
	return nil
}

func good(format string, args ...any) (status, string, string) {
	return ok, fmt.Sprintf(format, args...), ""
}

func bad(try, format string, args ...any) (status, string, string) {
	return failed, fmt.Sprintf(format, args...), try
}

func caution(try, format string, args ...any) (status, string, string) {
	return warn, fmt.Sprintf(format, args...), try
}

// broken reports an error of looking.
func broken(err error) (status, string, string) {
	err = cli.Explain(err)
	return failed, err.Error(), cli.HintOf(err)
}
