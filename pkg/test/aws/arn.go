package aws

import (
	"fmt"
	"strings"
)

// arn is an Amazon Resource Name, taken apart.
type arn struct {
	partition, service, region, account, resource string
}

func parseARN(text string) (arn, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[5] == "" {
		return arn{}, fmt.Errorf("%q is no ARN", text)
	}
	return arn{parts[1], parts[2], parts[3], parts[4], parts[5]}, nil
}

func (a arn) String() string {
	return strings.Join([]string{"arn", a.partition, a.service, a.region, a.account, a.resource}, ":")
}

// name is the last part of the resource: of a role without its path.
func (a arn) name() string { return a.resource[strings.LastIndex(a.resource, "/")+1:] }

// path is the path of a role or user, "/" for most.
func (a arn) path() string {
	_, rest, _ := strings.Cut(a.resource, "/")
	return "/" + strings.TrimSuffix(rest, a.name())
}

// iamARN is the ARN of what belongs to IAM, which knows no regions.
func (a account) iamARN(resource string) string {
	return arn{a.partition, "iam", "", a.id, resource}.String()
}

// account is an AWS account, which belongs to one partition.
type account struct{ partition, id string }
