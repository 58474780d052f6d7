package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("check", "Diagnose hubs, clusters, add-ons, ManifestWorks and tokens",
		newHub(env), newAgent(env), newCluster(env), newWork(env), newTokens(env))
}

// scope is what the checks of one call share.
type scope struct {
	env    cli.Env
	config *rest.Config
	client client.WithWatch
}

// newCheck completes a command that makes checks; steps returns them, and what they
// are about.
func newCheck(env cli.Env, cmd *cobra.Command, steps func(ctx context.Context, s *scope, args []string) (about string, steps []finding.Step, err error)) *cobra.Command {
	return checks.Complete(env, cmd, func(cmd *cobra.Command, args []string) (checks.Report, error) {
		s := &scope{env: env}
		var err error
		if s.client, s.config, err = env.Kube.Connect(); err != nil {
			return checks.Report{}, err
		}
		about, list, err := steps(cmd.Context(), s, args)
		if err != nil {
			return checks.Report{}, err
		}
		return checks.Run(cmd.Context(), about, list), nil
	})
}

func newHub(env cli.Env) *cobra.Command {
	selfTest, longest := true, limit(0)
	cmd := &cobra.Command{Use: "hub", Short: "Check a hub"}
	cmd.Flags().BoolVar(&selfTest, "self-test", true, "ask the hub for a worthless certificate and delete the request again")
	longest.addTo(cmd)
	return newCheck(env, cmd, func(_ context.Context, s *scope, _ []string) (string, []finding.Step, error) {
		h := &hubScope{scope: s, selfTest: selfTest, limit: longest}
		return "hub " + s.config.Host, h.steps(), nil
	})
}

func newAgent(env cli.Env) *cobra.Command {
	var longest limit
	cmd := &cobra.Command{
		Use:     "agent",
		Aliases: []string{"klusterlet"},
		Short:   "Check a managed cluster, on the managed cluster",
	}
	cli.OldName(cmd, "spoke")
	longest.addTo(cmd)
	return newCheck(env, cmd, func(_ context.Context, s *scope, _ []string) (string, []finding.Step, error) {
		a := &agentScope{scope: s, limit: longest}
		return "managed cluster " + s.config.Host, a.steps(), nil
	})
}

func newCluster(env cli.Env) *cobra.Command {
	var longest limit
	cmd := &cobra.Command{
		Use:               "cluster NAME",
		Short:             "Check one managed cluster, on the hub",
		Args:              cobra.MatchAll(cobra.ExactArgs(1), clusterName),
		ValidArgsFunction: fleet.CompleteClusters(env),
	}
	longest.addTo(cmd)
	return newCheck(env, cmd, func(ctx context.Context, s *scope, args []string) (string, []finding.Step, error) {
		if err := fleet.RequireHub(ctx, env, s.client); err != nil {
			return "", nil, err
		}
		c := &clusterScope{scope: s, name: args[0], limit: longest}
		return "cluster " + args[0], c.steps(ctx), nil
	})
}

// clusterName is an error unless the argument may be the name of a cluster.
func clusterName(_ *cobra.Command, args []string) error { return names.ValidateClusterName(args[0]) }

// kubernetes checks that the API server answers and is new enough.
func (s *scope) kubernetes(oldest string) func(context.Context) finding.Outcome {
	return func(context.Context) finding.Outcome {
		info, err := install.ServerVersion(s.config)
		if err != nil {
			return finding.Broken(err)
		}
		v, err := version.ParseGeneric(info.GitVersion)
		if err == nil && v.Major() > 0 && v.LessThan(version.MustParseGeneric(oldest)) {
			return finding.Bad("upgrade the cluster", "Kubernetes %s is too old, %s is needed", info.GitVersion, oldest)
		}
		if untested := install.Untested(v); untested != "" {
			return finding.Caution("upgrade the cluster when you can", "%s", untested)
		}
		return finding.Good("Kubernetes %s at %s", info.GitVersion, s.config.Host)
	}
}

// deployment checks that the Pods of a Deployment run what it says. One that is
// stuck in an update has failed, although its old Pods still run.
func (s *scope) deployment(namespace, name string) func(context.Context) finding.Outcome {
	return func(ctx context.Context) finding.Outcome {
		var d appsv1.Deployment
		try := s.env.Kubectl("-n", namespace, "get deployment,pods") + "; " + s.env.Kubectl("-n", namespace, "describe deployment", name)
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return finding.Bad(try, "deployment %s/%s: %v", namespace, name, err)
		}
		if found := s.rolling(ctx, &d, try); found.Status != finding.OK {
			return found
		}
		return finding.Good("%d pod(s) of %s/%s are ready", d.Status.AvailableReplicas, namespace, name)
	}
}

// rolling checks how far a Deployment's Pods are.
func (s *scope) rolling(ctx context.Context, d *appsv1.Deployment, try string) finding.Outcome {
	wanted, rolledOut := rollout(d)
	if rolledOut && d.Status.AvailableReplicas > 0 {
		return finding.Good("")
	}
	problem, err := podproblem.OfDeployment(ctx, s.client, d)
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return finding.Broken(err)
	case problem != "":
		return finding.Bad(try, "deployment %s/%s: %s", d.Namespace, d.Name, problem)
	case d.Status.AvailableReplicas > 0:
		return finding.Caution(try, "deployment %s/%s is rolling out: %d of %d pods run its current version, %d are ready",
			d.Namespace, d.Name, d.Status.UpdatedReplicas, wanted, d.Status.AvailableReplicas)
	}
	causes := []string{fmt.Sprintf("deployment %s/%s has no ready pod", d.Namespace, d.Name)}
	for _, c := range d.Status.Conditions {
		if c.Status != "True" || c.Type == appsv1.DeploymentReplicaFailure {
			causes = append(causes, c.Message)
		}
	}
	return finding.Bad(try, "%s", strings.Join(causes, "; "))
}

// rollout returns how many Pods a Deployment wants, and whether all of them run
// its current version.
func rollout(d *appsv1.Deployment) (wanted int32, rolledOut bool) {
	wanted = 1
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	return wanted, d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= wanted &&
		d.Status.AvailableReplicas >= wanted && d.Status.Replicas == d.Status.UpdatedReplicas
}

// fix returns the command to try, or, on an installation of another product,
// what manages that: our commands would break it.
func fix(other *origin.Installation, command string) string {
	if other == nil {
		return command
	}
	return "use " + other.Manager()
}

// operatorOf checks the operator called name, or the one of another product.
func (s *scope) operatorOf(other *origin.Installation, name string) func(context.Context) finding.Outcome {
	namespace := names.OperatorNamespace
	if other != nil && len(other.Operators) > 0 {
		namespace = other.Operators[0].Namespace
	}
	return s.deployment(namespace, name)
}

// condition checks a condition of an object that was read already.
func condition(conditions []metav1.Condition, kind string, want metav1.ConditionStatus, try string) finding.Outcome {
	c := apimeta.FindStatusCondition(conditions, kind)
	switch {
	case c == nil:
		return finding.Bad(try, "the operator has not reported %s yet", kind)
	case c.Status != want:
		return finding.Bad(try, "%s is %s: %s (%s)", kind, c.Status, c.Message, c.Reason)
	}
	return finding.Good("%s", c.Message)
}
