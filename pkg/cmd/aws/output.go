package aws

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/provision"
)

// The formats by which roles are created, in addition to the usual ones.
const (
	cloudFormation cli.Format = "cloudformation"
	terraform      cli.Format = "terraform"
	awsCLI         cli.Format = "cli"
)

func newOutput() *cli.Output {
	return cli.NewOutput(cli.TableFmt, cli.Name, cloudFormation, terraform, awsCLI)
}

// write prints roles in the format of out.
func write(w io.Writer, out *cli.Output, roles []identity.Role) error {
	switch out.Format {
	case cloudFormation:
		return cli.PrintJSON(w, provision.CloudFormation(roles))
	case terraform:
		configuration, err := provision.Terraform(roles)
		if err != nil {
			return err
		}
		return cli.PrintJSON(w, configuration)
	case awsCLI:
		script, err := provision.Commands(roles)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, script)
		return err
	case cli.TableFmt:
		return overview(w, roles)
	default:
		return cli.PrintList(w, out, cli.Kind[provision.Description]{Name: "AWSRole", Ref: func(d provision.Description) cli.Ref {
			return cli.RefTo("role", "", d.Name, time.Time{})
		}}, provision.Describe(roles), nil)
	}
}

// overview prints a block of lines for each role. It has no ARNs, which are wider
// than a terminal.
func overview(w io.Writer, roles []identity.Role) error {
	const format, indent = "%-9s%s\n", "         "
	var out strings.Builder
	for i, role := range roles {
		if i > 0 {
			out.WriteByte('\n')
		}
		_, _ = fmt.Fprintf(&out, format, "ROLE", strings.TrimPrefix(role.ARN.Path, "/")+role.ARN.Name)
		_, _ = fmt.Fprintf(&out, format, "ACCOUNT", role.ARN.Account+" in partition "+string(role.ARN.Partition))
		_, _ = fmt.Fprintf(&out, format, "PURPOSE", strings.TrimLeft(cli.Fold(indent+role.Purpose, indent), " "))
		label := "TAGS"
		for _, tag := range role.Tags {
			_, _ = fmt.Fprintf(&out, format, label, tag.Key+"="+tag.Value)
			label = ""
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
