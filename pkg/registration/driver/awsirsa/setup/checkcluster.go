package setup

import (
	"context"
	"regexp"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// clusterCheck checks a cluster.
type clusterCheck struct {
	driver.CheckScope

	cluster *clusterv1.ManagedCluster
}

// CheckCluster implements driver.Checker.
func (Setup) CheckCluster(scope driver.CheckScope, cluster *clusterv1.ManagedCluster) (announced, granted []finding.Step) {
	c := clusterCheck{scope, cluster}
	return []finding.Step{{Name: "its EKS cluster is announced", Run: c.announced}}, []finding.Step{
		{Name: "the hub granted its AWS identity", Run: c.granted},
		{Name: "its IAM role is mapped to its group", Run: c.mapped},
	}
}

// announced checks the annotations that the agent set when it requested to join.
func (c clusterCheck) announced(context.Context) finding.Outcome {
	again := "on the managed cluster: " + c.Elsewhere("join --registration-auth awsirsa")
	arn, _, err := awsirsa.AnnouncedARN(c.cluster)
	if err != nil {
		return finding.Bad(c.Kubectl("edit managedcluster", c.cluster.Name), "%v", err)
	}
	suffix := c.cluster.Annotations[identity.AnnotationSuffix]
	if arn == "" {
		return finding.Bad(again, "the annotation %s is missing", identity.AnnotationCluster)
	}
	cluster, err := awsarn.ParseCluster(arn)
	if err != nil {
		return finding.Bad(again, "annotation %s: %v", identity.AnnotationCluster, err)
	}
	if suffix == "" {
		return finding.Good("%s, of account %s", cluster, cluster.Account)
	}
	return finding.Good("%s, of account %s; its roles end with %s", cluster, cluster.Account, suffix)
}

// failedCall is how the hub reports a call to AWS: the call and the ARN, and then
// what to do.
var failedCall = regexp.MustCompile(`(?s)^(The AWS call \S+ on \S+ failed(?: with \S+)?): (.+)$`)

// granted checks what the hub reports about the role and its mapping.
func (c clusterCheck) granted(context.Context) finding.Outcome {
	found := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionRegistrationGranted)
	switch {
	case found == nil:
		return finding.Bad(c.Command("check hub"), "the hub has not reported %s; its registration controller must run with the driver awsirsa", names.ConditionRegistrationGranted)
	case found.Status == metav1.ConditionTrue:
		return finding.Good("%s", found.Message)
	}
	if call := failedCall.FindStringSubmatch(found.Message); call != nil {
		return finding.Bad(call[2], "%s (%s)", call[1], found.Reason)
	}
	return finding.Bad(c.checkManaged(), "%s (%s)", found.Message, found.Reason)
}

// checkManaged is the command that looks into AWS, with what is known of it here.
func (c clusterCheck) checkManaged() string {
	arn, _, _ := awsirsa.AnnouncedARN(c.cluster)
	return c.Elsewhere("aws check managed --hub-cluster-arn ARN --oidc-provider ISSUER --managed-cluster-arn", arn)
}

// role returns the IAM role that the hub recorded for the cluster, nil if there is none.
func (c clusterCheck) role(ctx context.Context) (*awsarn.Role, error) {
	grants, err := c.Granted(ctx, identity.AuthType)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(grants, func(g driver.Grant) bool { return g.Cluster == c.cluster.Name })
	if i < 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	role, err := awsirsa.GrantedRole(grants[i])
	return &role, err
}

// mapped shows the role that the hub recorded, and its line in aws-auth. An access
// entry is seen by AWS only.
func (c clusterCheck) mapped(ctx context.Context) finding.Outcome {
	role, err := c.role(ctx)
	if err != nil {
		return finding.Broken(err)
	}
	if role == nil {
		return finding.Bad(c.Command("check hub"), "the hub has recorded no IAM role of the cluster")
	}
	lines, err := awsauth.Store{Live: c.Client}.Find(ctx, role.String())
	if err != nil {
		return finding.Caution(c.checkManaged(), "%s; whether aws-auth maps it is unknown: %v", role, err)
	}
	group := names.MappedClusterGroup(c.cluster.Name)
	if len(lines) == 0 {
		return finding.Good("%s is recorded for the group %s; aws-auth has no line of it, so it is mapped by an access entry, which only AWS shows: %s",
			role, group, c.checkManaged())
	}
	for _, line := range lines {
		if line.Username != names.MappedClusterUser(c.cluster.Name) || strings.Join(line.Groups, ",") != group {
			return finding.Caution("check again in an hour: a hub that uses aws-auth corrects the line; else remove it with: "+
				c.Kubectl("-n", awsauth.Namespace, "edit configmap", awsauth.Name),
				"aws-auth maps %s to the user %s and the groups %s instead of %s", role, line.Username, strings.Join(line.Groups, ","), group)
		}
	}
	return finding.Good("aws-auth maps %s to the group %s", role, group)
}
