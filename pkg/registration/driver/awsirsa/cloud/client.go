package cloud

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// ErrEndpoint reports an AWS configuration that overrides the endpoints of AWS.
var ErrEndpoint = errors.New("the AWS configuration overrides the endpoint of IAM or EKS: unset AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_IAM, AWS_ENDPOINT_URL_EKS and endpoint_url")

// CheckEndpoints returns ErrEndpoint if config overrides the endpoints of AWS.
func CheckEndpoints(config aws.Config) error {
	if iam.NewFromConfig(config).Options().BaseEndpoint != nil || eks.NewFromConfig(config).Options().BaseEndpoint != nil {
		return ErrEndpoint
	}
	return nil
}

// Client makes calls for one EKS cluster, as a rule a hub. It is safe for concurrent use.
//
// Neither it nor its clients may become an interface value, as the paginators of the SDK
// want: the linker could not determine which of the 170 calls of IAM reflection uses,
// and would add 5 MB of code that nothing calls.
type Client struct {
	hub awsarn.Cluster
	iam *iam.Client
	eks *eks.Client
}

// New returns a client for a hub, in the hub's region and not in that of config. It
// sends no request.
func New(config aws.Config, hub awsarn.Cluster) *Client {
	config = renewing(config.Copy())
	config.Region = hub.Region
	return &Client{hub: hub, iam: iam.NewFromConfig(config), eks: eks.NewFromConfig(config)}
}

// Authentication is the authentication mode of an EKS cluster. An EKS cluster that has
// access entries can never return to the ConfigMap alone; see "Change
// authentication mode to use access entries" in the EKS User Guide.
type Authentication struct {
	// Mode is the cluster's authenticationMode, for messages.
	Mode string
	// Entries is whether EKS reads access entries, ConfigMap whether it reads the
	// ConfigMap kube-system/aws-auth.
	Entries, ConfigMap bool
}

// Cluster is an EKS cluster as EKS describes it.
type Cluster struct {
	Authentication

	// ARN is its own, Status what EKS does with it, such as ACTIVE.
	ARN, Status string
	// Issuer is the issuer of its ServiceAccounts' tokens, without https://.
	Issuer string
	// CA is the certificate authority of its API server, in PEM.
	CA []byte
}

// Cluster describes the cluster of this client, nil if the account has no cluster of
// that name in the region.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	out, err := c.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.hub.Name})
	if has(err, codeNoResource) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("eks:DescribeCluster", c.hub.String(), err)
	}
	described := &Cluster{Authentication: authentication(out.Cluster), ARN: aws.ToString(out.Cluster.Arn), Status: string(out.Cluster.Status)}
	if out.Cluster.Identity != nil && out.Cluster.Identity.Oidc != nil {
		described.Issuer = strings.TrimPrefix(aws.ToString(out.Cluster.Identity.Oidc.Issuer), "https://")
	}
	if out.Cluster.CertificateAuthority != nil {
		if described.CA, err = base64.StdEncoding.DecodeString(aws.ToString(out.Cluster.CertificateAuthority.Data)); err != nil {
			return nil, fmt.Errorf("the CA of %s cannot be decoded: %w", c.hub, err)
		}
	}
	return described, nil
}

// Authentication describes the hub. An answer about another EKS cluster than the
// hub is an error: everything else would then happen in the wrong account.
func (c *Client) Authentication(ctx context.Context) (Authentication, error) {
	out, err := c.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.hub.Name})
	if err != nil {
		return Authentication{}, explain("eks:DescribeCluster", c.hub.String(), err)
	}
	if got := aws.ToString(out.Cluster.Arn); got != c.hub.String() {
		return Authentication{}, fmt.Errorf("the hub controller's AWS credentials are of the account of %s, and the hub is %s; "+
			"annotate its service account with a role of the hub's account", got, c.hub)
	}
	return authentication(out.Cluster), nil
}

// authentication returns the authentication mode of a cluster's description.
func authentication(cluster *ekstypes.Cluster) Authentication {
	if cluster.AccessConfig == nil { // As EKS describes clusters that are older than access entries.
		return Authentication{Mode: string(ekstypes.AuthenticationModeConfigMap), ConfigMap: true}
	}
	mode := cluster.AccessConfig.AuthenticationMode
	return Authentication{
		Mode:      string(mode),
		Entries:   mode != ekstypes.AuthenticationModeConfigMap,
		ConfigMap: mode != ekstypes.AuthenticationModeApi,
	}
}
