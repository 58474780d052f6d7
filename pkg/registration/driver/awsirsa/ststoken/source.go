package ststoken

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/utils/clock"
)

const (
	// prefix begins every token, before the encoded URL.
	prefix = "k8s-aws-v1."
	// headerCluster is the signed header that binds a token to one cluster.
	headerCluster = "x-k8s-aws-id"
	// headerExpires is the lifetime of the presigned request itself, in seconds. The
	// authenticator requires a value but checks the time of the signature.
	headerExpires = "X-Amz-Expires"
	presignedFor  = "60"

	// life is how long a token is used: the authenticator accepts it for 15
	// minutes from its signature, by its own clock.
	life = 14 * time.Minute
	// spare is how long before its end a token is replaced.
	spare = time.Minute
	// session is how long the session of an assumed role lasts, the most that a
	// role may ask for that was itself obtained with a role.
	session = time.Hour
	// settled is the minimum age of the sessions of roles for a rejection to replace
	// them: an agent that is rejected for another reason must not assume its roles
	// with every request.
	settled = time.Minute
)

// ErrEndpoint reports an AWS configuration that overrides the endpoint of STS: the
// token would be signed for a server that no API server calls.
var ErrEndpoint = errors.New("the AWS configuration overrides the endpoint of STS, and EKS accepts tokens of AWS's own endpoints only: unset AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_STS and endpoint_url")

// Config is for which cluster tokens are, and as whom.
type Config struct {
	// Cluster is the name of the EKS cluster that is to accept the tokens.
	Cluster string
	// Region is the region of STS, usually the cluster's.
	Region string
	// Role is the ARN of the IAM role to assume first; empty for none.
	Role string
	// Session names the sessions of that role, for AWS's audit log.
	Session string
	// Clock is the time that tokens are replaced by.
	Clock clock.PassiveClock
	// Load returns the AWS configuration for a region; nil is the default chain of
	// the SDK.
	Load func(ctx context.Context, region string) (aws.Config, error)
}

// load is the default of Config.Load.
func load(ctx context.Context, region string) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithRegion(region))
}

// Token is a bearer token.
type Token struct {
	Value string
	// Expires is when to stop using it.
	Expires time.Time
}

// Source makes tokens. It is safe for concurrent use, and keeps a token until
// shortly before its end.
type Source struct {
	config  Config
	client  *sts.Client
	presign *sts.PresignClient
	// sessions are the caches of credentials on the way to the tokens, from the
	// process's own to the role's.
	sessions []*aws.CredentialsCache

	mu   sync.Mutex
	last Token
	// begun is when the sessions were last known to be new.
	begun time.Time
}

// New returns a source for config. It reads the AWS configuration of the process
// and sends no request. An endpoint of its own for STS is ErrEndpoint.
func New(ctx context.Context, c Config) (*Source, error) {
	if c.Cluster == "" || c.Region == "" {
		return nil, errors.New("tokens for EKS need the name and the region of a cluster")
	}
	if c.Load == nil {
		c.Load = load
	}
	loaded, err := c.Load(ctx, c.Region)
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	client := sts.NewFromConfig(loaded)
	if client.Options().BaseEndpoint != nil {
		return nil, ErrEndpoint
	}
	var sessions []*aws.CredentialsCache
	if own, ok := loaded.Credentials.(*aws.CredentialsCache); ok {
		sessions = append(sessions, own)
	}
	if c.Role != "" {
		assumed := stscreds.NewAssumeRoleProvider(client, c.Role, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName, o.Duration = c.Session, session
		})
		cached := aws.NewCredentialsCache(assumed)
		sessions = append(sessions, cached)
		loaded.Credentials = cached
		client = sts.NewFromConfig(loaded)
	}
	return &Source{config: c, client: client, presign: sts.NewPresignClient(client), sessions: sessions, begun: c.Clock.Now()}, nil
}

// Token returns a token that can be used for at least a minute. Only assuming a
// role, or fetching another credential, sends requests.
func (s *Source) Token(ctx context.Context) (Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now()
	if s.last.Expires.Sub(now) > spare {
		return s.last, nil
	}
	signer, err := s.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		s.renew()
		return Token{}, s.explain(err)
	}
	request, err := s.presign.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, s.bound)
	if err != nil {
		return Token{}, s.explain(err)
	}
	s.last = Token{Value: prefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL)), Expires: now.Add(life)}
	if signer.CanExpire && signer.Expires.Before(s.last.Expires) {
		s.last.Expires = signer.Expires
	}
	return s.last, nil
}

// Forget makes the next Token a new one after a server rejected the last. It also
// replaces sessions that are older than a minute: AWS may have ended them before their
// expiry, because the role was recreated or an administrator revoked them.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = Token{}
	s.renew()
}

// renew has the next Token begin new sessions, unless they are new.
func (s *Source) renew() {
	now := s.config.Clock.Now()
	if now.Sub(s.begun) < settled {
		return
	}
	s.begun = now
	for _, cached := range s.sessions {
		cached.Invalidate()
	}
}

// Caller returns the ARN of the identity that tokens prove, as STS sees it.
func (s *Source) Caller(ctx context.Context) (string, error) {
	identity, err := s.client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", s.explain(err)
	}
	return aws.ToString(identity.Arn), nil
}

// bound binds a presigned request to the cluster.
func (s *Source) bound(o *sts.PresignOptions) {
	o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
		o.APIOptions = append(o.APIOptions,
			smithyhttp.SetHeaderValue(headerCluster, s.config.Cluster),
			smithyhttp.SetHeaderValue(headerExpires, presignedFor))
	})
}
