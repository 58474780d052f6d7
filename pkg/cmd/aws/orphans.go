package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// hubTimeout bounds the look at the hub's clusters.
const hubTimeout = 30 * time.Second

// hubSteps are the checks of a hub.
func hubSteps(i *inspection) []checks.Step {
	return append(i.sideSteps(i.hub.Account),
		checks.Step{Name: "no role is orphaned", Run: i.orphanedRoles},
		checks.Step{Name: "no access entry is orphaned", Run: i.orphanedEntries})
}

// orphanedRoles finds the roles that the hub made for clusters that it does not
// have.
func (i *inspection) orphanedRoles(ctx context.Context) (checks.Status, string, string) {
	roles, err := i.client.Roles(ctx, identity.IsHubRole)
	if err != nil {
		return i.failure(err)
	}
	used, err := i.usedRoles(ctx) // After the roles: a cluster may be accepted meanwhile.
	if err != nil {
		return checks.Skip("the account has %d roles with names of this kind; which of them are of clusters is unknown: %v", len(roles), err)
	}
	var orphans, commands []string
	for _, role := range roles {
		if used[role.Name] {
			continue
		}
		mine, err := i.madeByHub(ctx, role)
		if err != nil {
			return i.failure(err)
		}
		if mine {
			orphans = append(orphans, role.String())
			commands = append(commands, "aws iam delete-role --role-name "+role.Name)
		}
	}
	return orphaned("iam:ListRoles", "role", len(roles), orphans, commands)
}

// madeByHub reports whether a tag says that this hub made a role. Roles of other
// hubs are called the same.
func (i *inspection) madeByHub(ctx context.Context, arn awsarn.Role) (bool, error) {
	role, err := i.client.Role(ctx, arn)
	return role != nil && role.Tags[identity.TagHub] == i.hub.String(), err
}

// orphanedEntries finds the access entries of such roles. They stay when a role is
// deleted.
func (i *inspection) orphanedEntries(ctx context.Context) (checks.Status, string, string) {
	if i.described == nil {
		return checks.Skip("EKS did not describe the cluster")
	}
	if !i.described.Entries {
		return checks.Skip("there are none with the authenticationMode %s", i.described.Mode)
	}
	roles, err := i.client.EntryRoles(ctx)
	if err != nil {
		return i.failure(err)
	}
	used, err := i.usedRoles(ctx)
	if err != nil {
		return checks.Skip("the cluster has %d access entries; which of them are of clusters is unknown: %v", len(roles), err)
	}
	var orphans, commands []string
	for _, role := range roles {
		if identity.IsHubRole(role.Name) && role.Account == i.hub.Account && !used[role.Name] {
			orphans = append(orphans, role.String())
			commands = append(commands, fmt.Sprintf("aws eks delete-access-entry --region %s --cluster-name %s --principal-arn %s", i.hub.Region, i.hub.Name, role))
		}
	}
	return orphaned("eks:ListAccessEntries", "access entry", len(roles), orphans, commands)
}

// orphaned reports orphans among all.
func orphaned(call, what string, all int, orphans, commands []string) (checks.Status, string, string) {
	if len(orphans) == 0 {
		return checks.Good("none of %d", all)
	}
	return checks.Bad(strings.Join(commands, "\n"), "%d of %d (%s) have no ManagedCluster on the hub, %s by %s:\n%s",
		len(orphans), all, call, what, what, strings.Join(orphans, "\n"))
}

// usedRoles returns the names of the roles that the hub's clusters have, and of
// those that the hub has recorded and is about to remove.
func (i *inspection) usedRoles(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	c, err := i.openHub()
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
		// One whose annotations are wrong may have had a role.
		used[identity.HubRoleName(cluster.Annotations[names.AnnotationManagedClusterRoleSuffix])] = true
		if plan, err := hub.Plan(&cluster); err == nil && plan != nil {
			used[identity.HubRoleName(plan.Key)] = true
		}
	}
	recorded, err := fleet.Roles(ctx, c)
	for _, role := range recorded {
		used[role.Name] = true
	}
	return used, cli.Explain(err)
}

// openHub returns a client of the hub, if the kubeconfig leads to it: compared with
// the clusters of another hub, every role would be orphaned.
func (i *inspection) openHub() (client.Client, error) {
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
	return c, fleet.RequireHub(i.env, c)
}
