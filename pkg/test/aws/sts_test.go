package aws_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

func TestGetCallerIdentity(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	for partition, at := range map[string]string{"aws": region, "aws-us-gov": "us-gov-west-1", "aws-cn": "cn-north-1"} {
		key := cloud.AddUser(t, "arn:"+partition+":iam::"+hubAccount+":user/alice")
		for _, c := range []clients{newClients(t, cloud, at, key), newClients(t, cloud, "eu-west-1", key)} {
			out, err := c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			if partition != "aws" && c.config.Region == "eu-west-1" {
				expect(t, partition+" in another partition", err, "InvalidClientTokenId")
				continue
			}
			expect(t, partition, err, "")
			if err == nil && (*out.Arn != "arn:"+partition+":iam::"+hubAccount+":user/alice" || *out.Account != hubAccount) {
				t.Errorf("%s: got %s of %s", partition, *out.Arn, *out.Account)
			}
		}
		_, err := newClients(t, cloud, at, key).iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: new("none")})
		expect(t, "a user without policies", err, "AccessDenied")
		_, err = newClients(t, cloud, at, key).eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: new("none")})
		expect(t, "a user without policies", err, "AccessDeniedException")
	}
}

func TestSignaturesAreVerified(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	key := cloud.AddAdmin(t, "aws", hubAccount)
	unknown, wrong := key, key
	unknown.AccessKeyID, wrong.SecretAccessKey = "AKIAUNKNOWN", "wrong"
	call := func(key aws.Credentials) error {
		_, err := newClients(t, cloud, region, key).sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		return err
	}
	expect(t, "an unknown key", call(unknown), "InvalidClientTokenId")
	expect(t, "a wrong secret", call(wrong), "SignatureDoesNotMatch")
	for skew, want := range map[time.Duration]string{
		4 * time.Minute: "", -4 * time.Minute: "", 6 * time.Minute: "SignatureDoesNotMatch", -6 * time.Minute: "SignatureDoesNotMatch",
	} {
		cloud.Skew(skew)
		expect(t, fmt.Sprint("clock ahead by ", skew), call(key), want)
	}
}

// TestPresigned shows that the emulator verifies what aws-iam-authenticator sends
// it: a presigned URL and a signed header that names the cluster.
func TestPresigned(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	key := cloud.AddUser(t, "arn:aws:iam::111122223333:user/alice")
	c := newClients(t, cloud, region, key)
	address := presign(t, c, "hub-0")
	for name, test := range map[string]struct {
		address, cluster string
		skew             time.Duration
		want             string
	}{
		"as it was signed": {address, "hub-0", 0, `"Arn":"arn:aws:iam::111122223333:user/alice"`},
		"14 minutes later": {address, "hub-0", 14 * time.Minute, `"Arn":`},
		"16 minutes later": {address, "hub-0", 16 * time.Minute, "Signature expired"},
		"another cluster":  {address, "hub-1", 0, "SignatureDoesNotMatch"},
		"another action":   {strings.Replace(address, "GetCallerIdentity", "GetSessionToken", 1), "hub-0", 0, "InvalidAction"},
		"another region":   {strings.ReplaceAll(address, "us-west-2", "us-east-2"), "hub-0", 0, "SignatureDoesNotMatch"},
	} {
		cloud.Skew(test.skew)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-K8s-Aws-Id", test.cluster)
		request.Header.Set("Accept", "application/json")
		response, err := c.config.HTTPClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(strings.ToLower(string(body)), strings.ToLower(test.want)) {
			t.Errorf("%s: got %s, %v, want %s", name, body, err, test.want)
		}
	}
}

func presign(t *testing.T, c clients, cluster string) string {
	t.Helper()
	p, err := sts.NewPresignClient(c.sts).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
			smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster), smithyhttp.SetHeaderValue("X-Amz-Expires", "60")))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.URL
}

// TestAssumeRole tries who may assume a role of the hub's account: every case
// says what the trust policy and the caller's identity policy are.
func TestAssumeRole(t *testing.T) {
	t.Parallel()
	tagged := `{"StringEquals":{"aws:PrincipalTag/managed_cluster_name":"managed-0"}}`
	named, assume := `{"AWS":"`+managedRole+`"}`, allow("sts:AssumeRole", hubRole)
	for name, test := range map[string]struct {
		trust, identity string
		tags            map[string]string
		session         []ststypes.Tag
		seconds         int32
		want            string
	}{
		"both sides allow":        {trust: byRole(managedRole), identity: assume},
		"no identity policy":      {trust: byRole(managedRole), want: "AccessDenied"},
		"another resource":        {trust: byRole(managedRole), identity: allow("sts:AssumeRole", hubRole+"2"), want: "AccessDenied"},
		"another role is trusted": {trust: byRole(managedRole + "2"), identity: assume, want: "AccessDenied"},
		"the account is trusted":  {trust: trusting(`{"AWS":"`+managedAccount+`"}`, `"sts:AssumeRole"`, `{}`), identity: assume},
		"the hub's own is":        {trust: trusting(`{"AWS":"`+hubAccount+`"}`, `"sts:AssumeRole"`, `{}`), identity: assume, want: "AccessDenied"},
		"tags as trusted": {
			trust: trusting(named, `"sts:AssumeRole"`, tagged), identity: assume,
			tags: map[string]string{"managed_cluster_name": "managed-0"},
		},
		"no tags": {trust: trusting(named, `"sts:AssumeRole"`, tagged), identity: assume, want: "AccessDenied"},
		"an hour": {trust: byRole(managedRole), identity: assume, seconds: 3600},
		"more than an hour when chained": {
			trust: byRole(managedRole), identity: assume, seconds: 3601, want: "ValidationError",
		},
		"less than 15 minutes": {trust: byRole(managedRole), identity: assume, seconds: 899, want: "ValidationError"},
		"session tags": {
			trust: trusting(named, `["sts:AssumeRole","sts:TagSession"]`, `{}`), identity: allow("sts:*", hubRole),
			session: []ststypes.Tag{{Key: new("a"), Value: new("b")}},
		},
		"session tags, trust without sts:TagSession": {
			trust: byRole(managedRole), identity: allow("sts:*", hubRole),
			session: []ststypes.Tag{{Key: new("a"), Value: new("b")}}, want: "AccessDenied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := aws.Start(t)
			policies := map[string]string{}
			if test.identity != "" {
				policies["p"] = test.identity
			}
			cloud.AddRole(t, aws.Role{ARN: managedRole, Tags: test.tags, Policies: policies, Trust: trusting(`"*"`, `"sts:AssumeRole"`, `{}`)})
			cloud.AddRole(t, aws.Role{ARN: managedRole + "2", Trust: trusting(`"*"`, `"sts:AssumeRole"`, `{}`)})
			cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: test.trust, MaxSession: 12 * time.Hour})
			in := &sts.AssumeRoleInput{RoleArn: new(hubRole), RoleSessionName: new("test"), Tags: test.session}
			if test.seconds != 0 {
				in.DurationSeconds = &test.seconds
			}
			_, err := newClients(t, cloud, region, cloud.Session(t, managedRole, "agent", nil)).sts.AssumeRole(t.Context(), in)
			expect(t, name, err, test.want)
		})
	}
}

// TestTransitiveTags shows what tags of Pod Identity do: they go along when the
// next role is assumed, which must therefore allow tags.
func TestTransitiveTags(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddRole(t, aws.Role{
		ARN: managedRole, Trust: trusting(`"*"`, `"sts:AssumeRole"`, `{}`), Policies: map[string]string{"p": allow("sts:*", "*")},
	})
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: byRole(managedRole)})
	tags := map[string]string{"eks-cluster-name": "managed-0"}
	c := newClients(t, cloud, region, cloud.Session(t, managedRole, "pod", tags))
	in := &sts.AssumeRoleInput{RoleArn: new(hubRole), RoleSessionName: new("test")}
	_, err := c.sts.AssumeRole(t.Context(), in)
	expect(t, "trust without sts:TagSession", err, "AccessDenied")
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: trusting(`{"AWS":"`+managedRole+`"}`, `["sts:AssumeRole","sts:TagSession"]`,
		`{"StringEquals":{"aws:PrincipalTag/eks-cluster-name":"managed-0"}}`)})
	_, err = c.sts.AssumeRole(t.Context(), in)
	expect(t, "trust with sts:TagSession", err, "")
}

// TestRecreatedPrincipal shows that a trust policy means the role that it was
// saved with, not the next one of its name.
func TestRecreatedPrincipal(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	managed := aws.Role{
		ARN: managedRole, Trust: trusting(`"*"`, `"sts:AssumeRole"`, `{}`),
		Policies: map[string]string{"p": allow("sts:AssumeRole", hubRole)},
	}
	first := cloud.AddRole(t, managed)
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: byRole(managedRole)})
	admin := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount))
	old := newClients(t, cloud, region, cloud.Session(t, managedRole, "agent", nil))
	in := &sts.AssumeRoleInput{RoleArn: new(hubRole), RoleSessionName: new("test")}
	_, err := old.sts.AssumeRole(t.Context(), in)
	expect(t, "at first", err, "")

	cloud.RemoveRole(managedRole)
	_, err = old.sts.AssumeRole(t.Context(), in)
	expect(t, "a session of a role that is gone", err, "InvalidClientTokenId")
	cloud.AddRole(t, managed)
	c := newClients(t, cloud, region, cloud.Session(t, managedRole, "agent", nil))
	_, err = c.sts.AssumeRole(t.Context(), in)
	expect(t, "created anew", err, "AccessDenied")
	if r, _ := cloud.Role(hubRole); !strings.Contains(r.Trust, first.ID) || strings.Contains(r.Trust, managedRole) {
		t.Errorf("the trust policy of the hub role is shown as %s", r.Trust)
	}
	_, err = admin.iam.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{
		RoleName: new("ocm-hub-1"), PolicyDocument: new(byRole(managedRole)),
	})
	expect(t, "the trust policy is put again", err, "")
	_, err = c.sts.AssumeRole(t.Context(), in)
	expect(t, "trusted again", err, "")
}

// TestSessionsExpire shows that credentials end with their session.
func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: trusting(`"*"`, `"sts:AssumeRole"`, `{}`)})
	c := newClients(t, cloud, region, aws.Credentials{})
	session := cloud.Session(t, managedRole, "agent", nil)
	c = c.with(credentials.NewStaticCredentialsProvider(session.AccessKeyID, session.SecretAccessKey, session.SessionToken))
	out, err := c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	expect(t, "within the hour", err, "")
	if err == nil && *out.Arn != "arn:aws:sts::444455556666:assumed-role/ocm-managed-1/agent" {
		t.Errorf("got %s", *out.Arn)
	}
	cloud.Advance(time.Hour)
	_, err = c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	expect(t, "after an hour", err, "ExpiredToken")
}

// TestScope shows that a signature is for one service in one region.
func TestScope(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount))
	for host, want := range map[string]string{
		"sts.us-west-2.amazonaws.com": "", "sts-fips.us-west-2.amazonaws.com": "",
		"sts.eu-west-1.amazonaws.com": "SignatureDoesNotMatch", "sts.amazonaws.com": "SignatureDoesNotMatch",
	} {
		_, err := c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.Options) {
			o.BaseEndpoint = new("https://" + host)
		})
		expect(t, host, err, want)
	}
	_, err := c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.Options) {
		o.BaseEndpoint = new("https://iam.amazonaws.com")
	})
	expect(t, "at another service", err, "InvalidAction")
	for service, want := range map[string]string{"sts": "<Account>", "iam": "SignatureDoesNotMatch"} {
		if got := callSignedFor(t, c, service); !strings.Contains(got, want) {
			t.Errorf("signed for %s: got %s, want %s", service, got, want)
		}
	}
}

// callSignedFor calls STS with a signature for a service.
func callSignedFor(t *testing.T, c clients, service string) string {
	t.Helper()
	key, err := c.config.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15", nil)
	if err != nil {
		t.Fatal(err)
	}
	nothing := sha256.Sum256(nil)
	err = v4.NewSigner().SignHTTP(t.Context(), key, request, hex.EncodeToString(nothing[:]), service, region, clock.RealClock{}.Now())
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.config.HTTPClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestHosts shows which hosts are answered for: those of AWS, where they are.
func TestHosts(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	c := newClients(t, cloud, region, aws.Credentials{})
	for host, answered := range map[string]bool{
		"sts.amazonaws.com": true, "sts.us-gov-west-1.amazonaws.com": true, "sts.cn-north-1.amazonaws.com.cn": true,
		"sts.us-west-2.api.aws": true, "iam.amazonaws.com": true, "iam.us-gov.amazonaws.com": true,
		"iam.cn-north-1.amazonaws.com.cn": true, "eks.us-west-2.amazonaws.com": true, "fips.eks.us-west-2.amazonaws.com": true,
		"eks.amazonaws.com": false, "s3.us-west-2.amazonaws.com": false, "sts.cn-north-1.amazonaws.com": false,
		"sts.us-west-2.amazonaws.com.cn": false, "sts.us-west-2.amazonaws.com.example.com": false,
		"a.sts.us-west-2.amazonaws.com": false, "sts": false, "stsamazonaws.com": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.config.HTTPClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != answered {
			t.Errorf("%s: got %v, want an answer: %t", host, err, answered)
		}
	}
}
