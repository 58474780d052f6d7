package check

import (
	"context"
	"regexp"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/eks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
)

// byAWS reports whether the cluster registers by AWS IAM. The first step reports
// what is wrong with reading it.
func (c *clusterScope) byAWS(ctx context.Context) bool {
	var cluster clusterv1.ManagedCluster
	err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &cluster)
	return err == nil && awsirsa.Announces(&cluster)
}

// announced checks the annotations that the agent set when it requested to join.
func (c *clusterScope) announced(context.Context) checks.Outcome {
	again := "on the managed cluster: " + c.env.Elsewhere("join --registration-auth awsirsa")
	arn, _, err := awsirsa.AnnouncedARN(&c.cluster)
	if err != nil {
		return checks.Bad(c.env.Kubectl("edit managedcluster", c.name), "%v", err)
	}
	suffix := c.cluster.Annotations[names.AnnotationManagedClusterRoleSuffix]
	if arn == "" {
		return checks.Bad(again, "the annotation %s is missing", names.AnnotationManagedClusterARN)
	}
	cluster, err := awsarn.ParseCluster(arn)
	if err != nil {
		return checks.Bad(again, "annotation %s: %v", names.AnnotationManagedClusterARN, err)
	}
	if suffix == "" {
		return checks.Good("%s, of account %s", cluster, cluster.Account)
	}
	return checks.Good("%s, of account %s; its roles end with %s", cluster, cluster.Account, suffix)
}

// failedCall is how the hub reports a call to AWS: the call and the ARN, and then
// what to do.
var failedCall = regexp.MustCompile(`(?s)^(The AWS call \S+ on \S+ failed(?: with \S+)?): (.+)$`)

// granted checks what the hub reports about the role and its mapping.
func (c *clusterScope) granted(context.Context) checks.Outcome {
	found := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionRegistrationGranted)
	switch {
	case found == nil:
		return checks.Bad(c.env.Command("check hub"), "the hub has not reported %s; its registration controller must run with the driver awsirsa", names.ConditionRegistrationGranted)
	case found.Status == metav1.ConditionTrue:
		return checks.Good("%s", found.Message)
	}
	if call := failedCall.FindStringSubmatch(found.Message); call != nil {
		return checks.Bad(call[2], "%s (%s)", call[1], found.Reason)
	}
	return checks.Bad(c.checkManaged(), "%s (%s)", found.Message, found.Reason)
}

// checkManaged is the command that looks into AWS, with what is known of it here.
func (c *clusterScope) checkManaged() string {
	arn, _, _ := awsirsa.AnnouncedARN(&c.cluster)
	return c.env.Elsewhere("aws check managed --hub-cluster-arn ARN --oidc-provider ISSUER --managed-cluster-arn", arn)
}

// mapped shows the role that the hub recorded, and its line in aws-auth. An access
// entry is seen by AWS only.
func (c *clusterScope) mapped(ctx context.Context) checks.Outcome {
	roles, err := eks.Roles(ctx, c.client)
	if err != nil {
		return checks.Broken(err)
	}
	role, recorded := roles[c.name]
	if !recorded {
		return checks.Bad(c.env.Command("check hub"), "the hub has recorded no IAM role of the cluster")
	}
	lines, err := awsauth.Store{Live: c.client}.Find(ctx, role.String())
	if err != nil {
		return checks.Caution(c.checkManaged(), "%s; whether aws-auth maps it is unknown: %v", role, err)
	}
	group := names.ClusterGroupAWS(c.name)
	if len(lines) == 0 {
		return checks.Good("%s is recorded for the group %s; aws-auth has no line of it, so it is mapped by an access entry, which only AWS shows: %s",
			role, group, c.checkManaged())
	}
	for _, line := range lines {
		if line.Username != names.ClusterUserAWS(c.name) || strings.Join(line.Groups, ",") != group {
			return checks.Caution("check again in an hour: a hub that uses aws-auth corrects the line; else remove it with: "+
				c.env.Kubectl("-n", awsauth.Namespace, "edit configmap", awsauth.Name),
				"aws-auth maps %s to the user %s and the groups %s instead of %s", role, line.Username, strings.Join(line.Groups, ","), group)
		}
	}
	return checks.Good("aws-auth maps %s to the group %s", role, group)
}
