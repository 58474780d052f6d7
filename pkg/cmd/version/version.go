// Package version is the "version" command. It prints the release of this
// binary and of what runs in a cluster, and whether the two fit together.
package version

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

type options struct {
	env    cli.Env
	out    *cli.Output
	client bool
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.Text)}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the cluster",
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "print the version of this binary only")
	o.out.AddTo(cmd)
	return cmd
}

// release is the stable schema of one side's version.
type release struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Date is when the commit was made.
	Date  string `json:"date,omitempty"`
	Image string `json:"image,omitempty"`
	// Product is "OCM" where that runs and not this product.
	Product string `json:"product,omitempty"`
}

// versions is the stable schema of the output.
type versions struct {
	Client     release  `json:"client"`
	Kubernetes string   `json:"kubernetes,omitempty"`
	Hub        *release `json:"hub,omitempty"`
	Agent      *release `json:"agent,omitempty"`
	// Skew says what does not fit together.
	Skew string `json:"skew,omitempty"`
}

func (o *options) run(ctx context.Context) error {
	v := versions{Client: release{Version: "v" + buildinfo.Version, Commit: buildinfo.Commit(), Date: buildinfo.Date()}}
	var err error
	if !o.client {
		err = o.server(ctx, &v)
	}
	// What is known is printed also when the cluster does not answer.
	if printErr := o.print(v); printErr != nil {
		return printErr
	}
	if v.Skew != "" {
		o.env.Warn("%s", v.Skew)
	}
	if cli.ExitCode(err) == cli.CodeUsage {
		o.env.Say("The cluster is not shown: %v.", err)
		return nil
	}
	return err
}

// server fills in what runs in the cluster.
func (o *options) server(ctx context.Context, v *versions) error {
	c, config, err := o.env.Kube.Connect()
	if err != nil {
		return err
	}
	info, err := lookup.ServerVersion(config)
	if err != nil {
		return err
	}
	v.Kubernetes = info.GitVersion
	if v.Hub, err = installed(ctx, c, names.ClusterManagerOperator, "clustermanagers"); err != nil {
		return err
	}
	if v.Agent, err = installed(ctx, c, names.KlusterletOperator, "klusterlets"); err != nil {
		return err
	}
	for _, side := range []struct {
		what string
		*release
	}{{"hub", v.Hub}, {"agent", v.Agent}} {
		if side.release != nil && side.Product == "" && v.Skew == "" {
			v.Skew = skew(side.what, side.Version)
		}
	}
	return nil
}

// installed returns the release of an operator: that of its image's tag, or, where the tag
// is one of the user's own or a digest, that of the CRD that init or join wrote with it.
func installed(ctx context.Context, c client.Client, operator, resource string) (*release, error) {
	var d appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: names.OperatorNamespace, Name: operator}, &d)
	if err != nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, client.IgnoreNotFound(err)
	}
	image := d.Spec.Template.Spec.Containers[0].Image
	r := &release{Version: "unknown", Image: image}
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") && !strings.Contains(image, "@") {
		r.Version = image[i+1:]
	}
	if origin.Theirs(&d.Spec.Template.Spec) {
		r.Product = "OCM"
		return r, nil
	}
	if _, err := version.ParseGeneric(r.Version); err == nil {
		return r, nil
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKey{Name: resource + "." + operatorv1.GroupName}, &crd); err != nil {
		return r, client.IgnoreNotFound(err)
	}
	if written := crd.Annotations[names.AnnotationVersion]; written != "" {
		r.Version = "v" + strings.TrimPrefix(written, "v")
	}
	return r, nil
}

// skew reports when two releases are more than a minor version apart, or when
// the cluster is ahead of the command.
func skew(what, installed string) string {
	theirs, err := version.ParseGeneric(installed)
	if err != nil {
		return ""
	}
	ours := version.MustParseGeneric(buildinfo.Version)
	distance := int(ours.Minor()) - int(theirs.Minor())
	switch {
	case ours.LessThan(theirs):
		return fmt.Sprintf("the %s is newer than this command: install the command of %s", what, buildinfo.ReleasePage(theirs.String()))
	case ours.Major() != theirs.Major() || distance > 1:
		return fmt.Sprintf("the %s is more than one minor release behind this command: upgrade it release by release", what)
	}
	return ""
}

func (o *options) print(v versions) error {
	if o.out.Machine() {
		return o.out.Object(o.env.Out, cli.Header{Kind: "Versions"}, v)
	}
	lines := []string{"Client: " + v.Client.Version}
	if v.Client.Commit != "" {
		lines = append(lines, "Commit: "+v.Client.Commit+" of "+v.Client.Date)
	}
	if v.Kubernetes != "" {
		lines = append(lines, "Kubernetes: "+v.Kubernetes)
	}
	for _, side := range []struct {
		name string
		r    *release
	}{{"Hub", v.Hub}, {"Agent", v.Agent}} {
		if side.r == nil {
			continue
		}
		line := side.name + ": " + side.r.Version
		if side.r.Product != "" {
			line += " of " + side.r.Product
		}
		lines = append(lines, line)
	}
	_, err := fmt.Fprintln(o.env.Out, strings.Join(lines, "\n"))
	return err
}
