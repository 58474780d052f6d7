package awsarn

import (
	"fmt"
	"regexp"
)

// Error says why a string is not the ARN that it should be.
type Error struct {
	// Value is the rejected input.
	Value string
	// Problem says what is wrong, as a clause.
	Problem string
	// Want is the form of a right one.
	Want string
}

// Error implements error. It quotes at most the first 120 characters of Value.
func (e *Error) Error() string {
	return fmt.Sprintf("%.120q %s; the form is %s", e.Value, e.Problem, e.Want)
}

// The forms that errors show.
const (
	clusterWant  = "arn:aws:eks:REGION:ACCOUNT:cluster/NAME"
	roleWant     = "arn:aws:iam::ACCOUNT:role/NAME"
	providerWant = "HOST/PATH, such as oidc.eks.REGION.amazonaws.com/id/ID, or https://HOST/PATH"
)

// MaxRoleName is the longest name of an IAM role, in characters. See IAM and AWS
// STS quotas in the IAM User Guide.
const MaxRoleName = 64

// The longest name of an EKS cluster and path of an IAM role.
const (
	maxClusterName = 100
	maxRolePath    = 512
)

// The forms below follow the API references: EKS CreateCluster for a cluster's name,
// IAM CreateRole for a role's name and path. Each matches its whole input. Long lengths
// are checked separately: compiled into an expression they take half a megabyte at
// every start.
var (
	clusterForm  = regexp.MustCompile(`^arn:([a-z0-9-]{1,20}):eks:([a-z0-9-]{1,40}):([0-9]{12}):cluster/([0-9A-Za-z][0-9A-Za-z_-]*)$`)
	roleForm     = regexp.MustCompile(`^arn:([a-z0-9-]{1,20}):iam::([0-9]{12}):role(/|/[!-~]+/)([0-9A-Za-z_+=,.@-]+)$`)
	providerForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(/[0-9A-Za-z._~-]+)*$`)
)

// Cluster names an EKS cluster.
type Cluster struct {
	Partition Partition
	// Region and Account are where the cluster is; an account has 12 digits.
	Region  string
	Account string
	// Name is unique in its region and account only.
	Name string
}

// ParseCluster reads the ARN of an EKS cluster. Every error is an *Error.
func ParseCluster(arn string) (Cluster, error) {
	m := clusterForm.FindStringSubmatch(arn)
	if m == nil || len(m[4]) > maxClusterName {
		return Cluster{}, &Error{arn, "is not the ARN of an EKS cluster", clusterWant}
	}
	c := Cluster{Partition: Partition(m[1]), Region: m[2], Account: m[3], Name: m[4]}
	if !c.Partition.known() {
		return Cluster{}, &Error{arn, fmt.Sprintf("is of the partition %q, which does not exist", m[1]), clusterWant}
	}
	if !c.Partition.has(c.Region) {
		return Cluster{}, &Error{arn, fmt.Sprintf("is of %q, which is no region of the partition %s", m[2], m[1]), clusterWant}
	}
	return c, nil
}

// String returns the ARN.
func (c Cluster) String() string {
	return fmt.Sprintf("arn:%s:eks:%s:%s:cluster/%s", c.Partition, c.Region, c.Account, c.Name)
}

// Role names an IAM role.
type Role struct {
	Partition Partition
	Account   string
	// Path begins and ends with a slash; it is a single one for most roles.
	Path string
	// Name is unique in its account, regardless of the path and of case.
	Name string
}

// ParseRole reads the ARN of an IAM role. Every error is an *Error.
func ParseRole(arn string) (Role, error) {
	m := roleForm.FindStringSubmatch(arn)
	if m == nil || len(m[3]) > maxRolePath || len(m[4]) > MaxRoleName {
		return Role{}, &Error{arn, "is not the ARN of an IAM role", roleWant}
	}
	r := Role{Partition: Partition(m[1]), Account: m[2], Path: m[3], Name: m[4]}
	if !r.Partition.known() {
		return Role{}, &Error{arn, fmt.Sprintf("is of the partition %q, which does not exist", m[1]), roleWant}
	}
	return r, nil
}

// String returns the ARN.
func (r Role) String() string {
	return fmt.Sprintf("arn:%s:iam::%s:role%s%s", r.Partition, r.Account, r.Path, r.Name)
}

// Provider names an IAM OIDC identity provider.
type Provider struct {
	Partition Partition
	Account   string
	// Issuer is the issuer's URL without https://, which condition keys begin with.
	Issuer string
}

// ParseIssuer returns the issuer of an OIDC provider as IAM writes it, from that
// or from its https URL. IAM takes neither a port nor a query. Every error is an
// *Error.
func ParseIssuer(s string) (string, error) {
	issuer := s
	if len(s) > len(scheme) && s[:len(scheme)] == scheme {
		issuer = s[len(scheme):]
	}
	const longest = 255 // The quota of an OIDC provider's URL.
	if len(issuer) > longest || !providerForm.MatchString(issuer) {
		return "", &Error{s, "is not the issuer of an OIDC provider", providerWant}
	}
	return issuer, nil
}

const scheme = "https://"

// String returns the ARN.
func (p Provider) String() string {
	return fmt.Sprintf("arn:%s:iam::%s:oidc-provider/%s", p.Partition, p.Account, p.Issuer)
}

// AccessEntries returns the pattern of the ARNs of a cluster's access entries
// for the roles of an account whose names match a pattern of their own, with *
// as wildcard. EKS ends each with an id of its own choice.
func AccessEntries(cluster Cluster, account, role string) string {
	return fmt.Sprintf("arn:%s:eks:%s:%s:access-entry/%s/role/%s/%s/*",
		cluster.Partition, cluster.Region, cluster.Account, cluster.Name, account, role)
}
