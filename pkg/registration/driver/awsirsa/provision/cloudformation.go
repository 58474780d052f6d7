package provision

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Template is a CloudFormation template. It is JSON, which CloudFormation takes
// as well as YAML. The roles have names, so that a stack of it needs the
// capability CAPABILITY_NAMED_IAM.
type Template struct {
	Version     string              `json:"AWSTemplateFormatVersion"`
	Description string              `json:"Description"`
	Resources   map[string]Resource `json:"Resources"`
}

// Resource is a resource of a Template.
type Resource struct {
	Type       string `json:"Type"`
	Properties any    `json:"Properties"`
}

// roleProperties are the properties of AWS::IAM::Role.
type roleProperties struct {
	RoleName    string          `json:"RoleName"`
	Path        string          `json:"Path,omitempty"`
	Description string          `json:"Description"`
	Trust       identity.Policy `json:"AssumeRolePolicyDocument"`
	Policies    []inlinePolicy  `json:"Policies,omitempty"`
	Tags        []templateTag   `json:"Tags,omitempty"`
}

type inlinePolicy struct {
	PolicyName     string          `json:"PolicyName"`
	PolicyDocument identity.Policy `json:"PolicyDocument"`
}

type templateTag struct {
	Key   string `json:"Key"`
	Value string `json:"Value"`
}

// associationProperties are the properties of AWS::EKS::PodIdentityAssociation.
type associationProperties struct {
	ClusterName    string              `json:"ClusterName"`
	Namespace      string              `json:"Namespace"`
	ServiceAccount string              `json:"ServiceAccount"`
	RoleARN        map[string][]string `json:"RoleArn"`
}

// CloudFormation returns the template that makes roles.
func CloudFormation(roles []identity.Role) Template {
	t := Template{
		Version:     "2010-09-09",
		Description: "IAM roles for the registration of clusters with Open Cluster Management",
		Resources:   map[string]Resource{},
	}
	for i, role := range roles {
		id := fmt.Sprintf("Role%d", i+1)
		t.Resources[id] = Resource{"AWS::IAM::Role", propertiesOf(role)}
		for j, a := range associations(role) {
			t.Resources[fmt.Sprintf("%sAssociation%d", id, j+1)] = Resource{"AWS::EKS::PodIdentityAssociation", associationProperties{
				a.Cluster, a.Namespace, a.ServiceAccount, map[string][]string{"Fn::GetAtt": {id, "Arn"}},
			}}
		}
	}
	return t
}

func propertiesOf(role identity.Role) roleProperties {
	p := roleProperties{RoleName: role.ARN.Name, Path: role.ARN.Path, Description: role.Purpose, Trust: role.Trust}
	if role.Access != nil {
		p.Policies = []inlinePolicy{{PolicyName, *role.Access}}
	}
	for _, tag := range role.Tags {
		p.Tags = append(p.Tags, templateTag(tag))
	}
	return p
}
