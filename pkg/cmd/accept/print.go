package accept

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/approver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// row is one request in the table; a cluster without one has a row too.
type row struct {
	approver.Result
	request approval.Request
}

func (o *options) print(results []approver.Result) error {
	if len(results) == 0 {
		return nil
	}
	if o.out.Format != cli.TableFmt && o.out.Format != cli.Wide {
		return cli.PrintList(o.env.Out, o.out, cli.Kind[approver.Result]{Name: "AcceptResult", Ref: func(r approver.Result) cli.Ref {
			return fleet.ClusterRef(r.Cluster, time.Time{})
		}}, results, nil)
	}
	var rows []row
	for _, r := range results {
		for _, req := range r.Requests {
			rows = append(rows, row{r, req})
		}
		if len(r.Requests) == 0 {
			rows = append(rows, row{Result: r})
		}
	}
	return cli.PrintTable(o.env.Out, o.out, rows, o.columns())
}

func (o *options) columns() []cli.Column[row] {
	return []cli.Column[row]{
		{Header: "cluster", Value: func(r row) string { return r.Cluster }},
		{Header: "accepted", Value: func(r row) string { return cli.YesNo(r.Accepted) }},
		{Header: "state", Value: func(r row) string { return string(r.request.State) }},
		{Header: "age", Value: func(r row) string {
			if r.request.Name == "" {
				return ""
			}
			return duration.ShortHumanDuration(o.env.Clock.Since(r.request.Created))
		}},
		{Header: "fingerprint", Value: func(r row) string {
			if o.out.Format == cli.Wide {
				return r.request.Fingerprint
			}
			return cli.Short(r.request.Fingerprint)
		}},
		{Header: "requester", Wide: true, Value: func(r row) string { return r.request.Requester }},
	}
}
