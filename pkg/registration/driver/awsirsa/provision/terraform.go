package provision

import (
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Configuration is a Terraform configuration in JSON syntax, for a file whose
// name ends in .tf.json. The provider hashicorp/aws decides on account and region.
type Configuration struct {
	// Resource has the resources by type and name.
	Resource map[string]map[string]any `json:"resource"`
}

type terraformRole struct {
	Name        string            `json:"name"`
	Path        string            `json:"path"`
	Description string            `json:"description"`
	Trust       string            `json:"assume_role_policy"`
	Tags        map[string]string `json:"tags,omitempty"`
}

type terraformPolicy struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Policy string `json:"policy"`
}

type terraformAssociation struct {
	ClusterName    string `json:"cluster_name"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"service_account"`
	RoleARN        string `json:"role_arn"`
}

// Terraform returns the configuration that makes roles. The error is about
// encoding a policy.
func Terraform(roles []identity.Role) (Configuration, error) {
	c := Configuration{Resource: map[string]map[string]any{}}
	for i, role := range roles {
		if err := c.addRole(fmt.Sprintf("role%d", i+1), role); err != nil {
			return Configuration{}, err
		}
	}
	return c, nil
}

func (c Configuration) addRole(id string, role identity.Role) error {
	trust, err := role.Trust.Compact()
	if err != nil {
		return fmt.Errorf("trust policy of %s: %w", role.ARN, err)
	}
	r := terraformRole{
		Name: literal(role.ARN.Name), Path: literal(role.ARN.Path), Description: literal(role.Purpose), Trust: literal(trust),
		Tags: map[string]string{},
	}
	for _, tag := range role.Tags {
		r.Tags[tag.Key] = literal(tag.Value)
	}
	c.add("aws_iam_role", id, r)
	for i, a := range associations(role) {
		c.add("aws_eks_pod_identity_association", fmt.Sprintf("%s_%d", id, i+1), terraformAssociation{
			literal(a.Cluster), literal(a.Namespace), literal(a.ServiceAccount), "${aws_iam_role." + id + ".arn}",
		})
	}
	if role.Access == nil {
		return nil
	}
	access, err := role.Access.Compact()
	if err != nil {
		return fmt.Errorf("access policy of %s: %w", role.ARN, err)
	}
	c.add("aws_iam_role_policy", id, terraformPolicy{PolicyName, "${aws_iam_role." + id + ".id}", literal(access)})
	return nil
}

func (c Configuration) add(kind, id string, resource any) {
	if c.Resource[kind] == nil {
		c.Resource[kind] = map[string]any{}
	}
	c.Resource[kind][id] = resource
}

// literal keeps Terraform from taking a part of s for a template: in JSON syntax
// every string is one.
func literal(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}
