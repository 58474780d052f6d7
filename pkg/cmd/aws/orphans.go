package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// hubTimeout bounds the look at the hub's clusters.
const hubTimeout = 30 * time.Second

// hubSteps are the checks of a hub.
func hubSteps(i *inspection) []finding.Step {
	return append(i.sideSteps(i.hub.Account),
		finding.Step{Name: "no role is orphaned", Run: i.orphanedRoles},
		finding.Step{Name: "no access entry is orphaned", Run: i.orphanedEntries},
		finding.Step{Name: "no line of aws-auth is orphaned", Run: i.orphanedLines})
}

// found are roles of the hub's account, or what is about them.
type found struct {
	// what is what each is, call where they are from.
	what, call string
	roles      []awsarn.Role
	// goneToo is whether something about a role that does not exist can be orphaned.
	goneToo bool
	// remove is how one is removed.
	remove func(awsarn.Role) string
}

// orphanedRoles finds the roles that the hub made for clusters that it does not
// have.
func (i *inspection) orphanedRoles(ctx context.Context) finding.Outcome {
	roles, err := i.client.Roles(ctx, identity.IsHubRole)
	if err != nil {
		return i.failure(err)
	}
	return i.orphans(ctx, found{what: "role", call: "iam:ListRoles", roles: roles, remove: func(role awsarn.Role) string {
		return "aws iam delete-role --role-name " + role.Name
	}})
}

// orphanedEntries finds the access entries of such roles. They stay when a role is
// deleted.
func (i *inspection) orphanedEntries(ctx context.Context) finding.Outcome {
	if i.described == nil {
		return finding.Skip("EKS did not describe the cluster")
	}
	if !i.described.Entries {
		return finding.Skip("there are none with the authenticationMode %s", i.described.Mode)
	}
	roles, err := i.client.EntryRoles(ctx)
	if err != nil {
		return i.failure(err)
	}
	return i.orphans(ctx, found{what: "access entry", call: "eks:ListAccessEntries", roles: roles, goneToo: true, remove: func(role awsarn.Role) string {
		return fmt.Sprintf("aws eks delete-access-entry --region %s --cluster-name %s --principal-arn %s", i.hub.Region, i.hub.Name, role)
	}})
}

// orphanedLines finds the lines of such roles in the ConfigMap aws-auth. EKS lets
// a role in that is created again under the name in a line.
func (i *inspection) orphanedLines(ctx context.Context) finding.Outcome {
	if i.described == nil {
		return finding.Skip("EKS did not describe the cluster")
	}
	if !i.described.ConfigMap {
		return finding.Skip("EKS does not read aws-auth with the authenticationMode %s", i.described.Mode)
	}
	c, err := i.openHub(ctx)
	if err != nil {
		return finding.Skip("the lines of aws-auth are unknown: %v", err)
	}
	edit := i.env.Kubectl("-n", awsauth.Namespace, "edit configmap", awsauth.Name)
	roles, err := awsauth.Store{Live: c}.Roles(ctx)
	switch {
	case apierrors.IsForbidden(err):
		err = cli.Explain(err)
		return finding.Outcome{Status: finding.Unknown, Message: err.Error(), Try: cli.HintOf(err)}
	case errors.Is(err, awsauth.ErrUnreadable):
		return finding.Bad(edit, "ConfigMap %s/%s: %v", awsauth.Namespace, awsauth.Name, err)
	case err != nil:
		return finding.Broken(err)
	}
	return i.orphans(ctx, found{
		what: "line", call: "ConfigMap " + awsauth.Namespace + "/" + awsauth.Name, roles: roles, goneToo: true,
		remove: func(awsarn.Role) string { return "delete each item with such a rolearn from mapRoles: " + edit },
	})
}

// orphans reports those of all that are of no cluster that the hub accepts.
func (i *inspection) orphans(ctx context.Context, all found) finding.Outcome {
	used, err := i.usedRoles(ctx) // After all were listed: a cluster may be accepted meanwhile.
	if err != nil {
		return finding.Skip("which of %d (%s) are of clusters is unknown: %v", len(all.roles), all.call, err)
	}
	var orphans, commands []string
	for _, role := range all.roles {
		if !identity.IsHubRole(role.Name) || role.Account != i.hub.Account || used[role.Name] {
			continue
		}
		mine, err := i.madeByHub(ctx, role, all.goneToo)
		if err != nil {
			return i.failure(err)
		}
		if mine {
			orphans, commands = append(orphans, role.String()), append(commands, all.remove(role))
		}
	}
	if len(orphans) == 0 {
		return finding.Good("none of %d", len(all.roles))
	}
	return finding.Bad(strings.Join(slices.Compact(commands), "\n"), "%d of %d (%s) have no accepted ManagedCluster on the hub, %s by %s:\n%s",
		len(orphans), len(all.roles), all.call, all.what, all.what, strings.Join(orphans, "\n"))
}

// madeByHub reports whether a tag says that this hub made a role. Roles of other
// hubs are called the same. A role that is gone has a name alone: ifGone is the
// answer then.
func (i *inspection) madeByHub(ctx context.Context, arn awsarn.Role, ifGone bool) (bool, error) {
	role, err := i.client.Role(ctx, arn)
	if role == nil {
		return ifGone, err
	}
	return role.Tags[identity.TagHub] == i.hub.String(), err
}

// usedRoles returns the names of the roles that the accepted clusters of the hub
// have, and of those that the hub has recorded and is about to remove.
func (i *inspection) usedRoles(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	c, err := i.openHub(ctx)
	if err != nil {
		return nil, err
	}
	var list clusterv1.ManagedClusterList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the ManagedClusters: %w", cli.Explain(err))
	}
	used := map[string]bool{}
	hub := awsirsa.NewHub(awsirsa.HubConfig{Cluster: i.hub})
	for _, cluster := range list.Items {
		if !cluster.Spec.HubAcceptsClient {
			continue
		}
		// One whose annotations are wrong may have had a role.
		used[identity.HubRoleName(cluster.Annotations[identity.AnnotationSuffix])] = true
		if plan, err := hub.Plan(&cluster); err == nil && plan != nil {
			used[identity.HubRoleName(plan.Key)] = true
		}
	}
	recorded, err := recordedRoles(ctx, c)
	for _, role := range recorded {
		used[role.Name] = true
	}
	return used, cli.Explain(err)
}

// openHub returns a client of the hub, if the kubeconfig leads to it: compared with
// the clusters of another hub, every role would be orphaned.
func (i *inspection) openHub(ctx context.Context) (client.Client, error) {
	if i.described == nil {
		return nil, errors.New("EKS did not describe the hub")
	}
	config, err := i.env.Kube.Config()
	if err != nil {
		return nil, err
	}
	ca := config.CAData
	if len(ca) == 0 && config.CAFile != "" {
		if ca, err = cli.ReadFile(config.CAFile); err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(bytes.TrimSpace(ca), bytes.TrimSpace(i.described.CA)) {
		return nil, fmt.Errorf("the kubeconfig leads to %s, whose CA is not that of %s; choose the hub with --context", config.Host, i.hub)
	}
	c, err := cli.NewClient(config)
	if err != nil {
		return nil, err
	}
	return c, fleet.RequireHub(ctx, i.env, c)
}
