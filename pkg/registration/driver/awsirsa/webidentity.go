package awsirsa

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// WebIdentityAudience is whom a token of a ServiceAccount is for that AWS accepts.
const WebIdentityAudience = "sts.amazonaws.com"

// WebIdentity returns an AgentConfig.Load for an IAM role that a ServiceAccount has,
// with a token of that ServiceAccount: as in its pods, and without one. No AWS
// credential of this machine is used.
func WebIdentity(role, token string) func(context.Context, string) (aws.Config, error) {
	return func(ctx context.Context, region string) (aws.Config, error) {
		config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region), awsconfig.WithCredentialsProvider(aws.AnonymousCredentials{}))
		if err == nil {
			config.Credentials = aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(config), role, webIdentity(token)))
		}
		return config, err
	}
}

// webIdentity is a token that is not in a file.
type webIdentity string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (w webIdentity) GetIdentityToken() ([]byte, error) { return []byte(w), nil }
