package fleet

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// Rendering is how a command prints the objects that it would apply, for a repository from
// which something else applies them.
type Rendering struct {
	// File is where they are written; empty is stdout.
	File string
	// SkipSecrets leaves out Secrets, which do not belong into a repository.
	SkipSecrets bool
}

// AddTo registers --output-file and --skip-secret.
func (r *Rendering) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.File, "output-file", "", "File to write the objects to, as YAML")
	cmd.Flags().BoolVar(&r.SkipSecrets, "skip-secret", false, "With --dry-run=client, leave out Secrets")
}

// Check is an error if Secrets are to be left out of what is applied.
func (r *Rendering) Check(env cli.Env) error {
	if r.SkipSecrets && env.Kube.DryRun() != cli.DryRunClient {
		return cli.Usagef("--skip-secret needs --dry-run=client: what is installed needs its Secrets")
	}
	return nil
}

// Print prints objects, or writes them to the file, and names the Secrets that it leaves out.
func (r *Rendering) Print(env cli.Env, out *cli.Output, objs []client.Object) error {
	if r.SkipSecrets {
		var left []string
		objs = slices.DeleteFunc(objs, func(obj client.Object) bool {
			secret := isSecret(obj)
			if secret {
				left = append(left, obj.GetNamespace()+"/"+obj.GetName())
			}
			return secret
		})
		if len(left) > 0 {
			env.Say("%s", cli.Fold("Secrets that are left out: "+strings.Join(left, ", "), "  "))
		}
	}
	if r.File == "" {
		return PrintObjects(env.Out, out, objs)
	}
	return r.Write(objs)
}

func isSecret(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, scheme.New())
	return err == nil && gvk.GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// Write writes objects to the file, if there is one, that only its owner reads: there may be
// credentials among them.
func (r *Rendering) Write(objs []client.Object) error {
	if r.File == "" {
		return nil
	}
	var written bytes.Buffer
	if err := printYAML(&written, objs); err != nil {
		return err
	}
	return cli.WriteSecretFile(r.File, written.Bytes())
}

// PrintObjects prints objects as a YAML stream that kubectl can apply, as names, or as a List
// in another machine format.
func PrintObjects(w io.Writer, out *cli.Output, objs []client.Object) error {
	if out.Format != cli.Name && (!out.Machine() || out.Format == cli.YAML) {
		return printYAML(w, objs)
	}
	for _, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, scheme.New())
		if err != nil {
			return err
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		if out.Format == cli.Name {
			if _, err := fmt.Fprintln(w, cli.RefToKind(gvk.GroupKind(), obj.GetNamespace(), obj.GetName())); err != nil {
				return err
			}
		}
	}
	if out.Format == cli.Name {
		return nil
	}
	return out.Manifests(w, objs)
}

func printYAML(w io.Writer, objs []client.Object) error {
	printer := printers.NewTypeSetter(scheme.New()).ToPrinter(&printers.YAMLPrinter{})
	for _, obj := range objs {
		if err := printer.PrintObj(obj, w); err != nil {
			return fmt.Errorf("encode %s: %w", obj.GetName(), err)
		}
	}
	return nil
}
