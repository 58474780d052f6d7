package awsarn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

func TestParseCluster(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]awsarn.Cluster{
		"arn:aws:eks:eu-west-1:123456789012:cluster/hub":          {Partition: awsarn.AWS, Region: "eu-west-1", Account: "123456789012", Name: "hub"},
		"arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/h": {Partition: awsarn.GovCloud, Region: "us-gov-west-1", Account: "123456789012", Name: "h"},
		"arn:aws-cn:eks:cn-north-1:000000000000:cluster/A_b-1":    {Partition: awsarn.China, Region: "cn-north-1", Account: "000000000000", Name: "A_b-1"},
		"arn:aws-iso-b:eks:us-isob-east-1:123456789012:cluster/h": {Partition: awsarn.ISOB, Region: "us-isob-east-1", Account: "123456789012", Name: "h"},
		"arn:aws-eusc:eks:eusc-de-east-1:123456789012:cluster/h":  {Partition: awsarn.EUSC, Region: "eusc-de-east-1", Account: "123456789012", Name: "h"},
		"arn:aws:eks:mx-central-1:123456789012:cluster/" + strings.Repeat("a", 100): {
			Partition: awsarn.AWS, Region: "mx-central-1", Account: "123456789012", Name: strings.Repeat("a", 100),
		},
	} {
		got, err := awsarn.ParseCluster(arn)
		if err != nil || got != want || got.String() != arn {
			t.Errorf("%s: got %+v, %v", arn, got, err)
		}
	}
}

func TestParseClusterRefuses(t *testing.T) {
	t.Parallel()
	for name, arn := range map[string]string{
		"nothing":                    "",
		"a name":                     "hub",
		"no name":                    "arn:aws:eks:eu-west-1:123456789012:cluster/",
		"another service":            "arn:aws:ec2:eu-west-1:123456789012:cluster/hub",
		"another resource":           "arn:aws:eks:eu-west-1:123456789012:nodegroup/hub",
		"a short account":            "arn:aws:eks:eu-west-1:12345678901:cluster/hub",
		"a long account":             "arn:aws:eks:eu-west-1:1234567890123:cluster/hub",
		"no region":                  "arn:aws:eks::123456789012:cluster/hub",
		"a zone":                     "arn:aws:eks:eu-west-1a:123456789012:cluster/hub",
		"an unknown partition":       "arn:aws-moon:eks:eu-west-1:123456789012:cluster/hub",
		"a region of China":          "arn:aws:eks:cn-north-1:123456789012:cluster/hub",
		"a region of GovCloud":       "arn:aws:eks:us-gov-west-1:123456789012:cluster/hub",
		"a commercial region in gov": "arn:aws-us-gov:eks:us-east-1:123456789012:cluster/hub",
		"a name that is too long":    "arn:aws:eks:eu-west-1:123456789012:cluster/" + strings.Repeat("a", 101),
		"a name with a slash":        "arn:aws:eks:eu-west-1:123456789012:cluster/a/b",
		"a name with a separator":    "arn:aws:eks:eu-west-1:123456789012:cluster/a#b",
		"a name that begins with -":  "arn:aws:eks:eu-west-1:123456789012:cluster/-a",
		"a line break":               "arn:aws:eks:eu-west-1:123456789012:cluster/hub\n",
		"a wildcard":                 "arn:aws:eks:eu-west-1:123456789012:cluster/*",
	} {
		_, err := awsarn.ParseCluster(arn)
		wrong, ok := errors.AsType[*awsarn.Error](err)
		if !ok || wrong.Value != arn || !strings.HasSuffix(err.Error(), "; the form is arn:aws:eks:REGION:ACCOUNT:cluster/NAME") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]awsarn.Role{
		"arn:aws:iam::123456789012:role/a":                             {Partition: awsarn.AWS, Account: "123456789012", Path: "/", Name: "a"},
		"arn:aws-cn:iam::123456789012:role/team/x/a+b=c,d.e@f-g_h":     {Partition: awsarn.China, Account: "123456789012", Path: "/team/x/", Name: "a+b=c,d.e@f-g_h"},
		"arn:aws:iam::123456789012:role/" + strings.Repeat("a", 64):    {Partition: awsarn.AWS, Account: "123456789012", Path: "/", Name: strings.Repeat("a", 64)},
		"arn:aws-iso-f:iam::123456789012:role/aws-service-role/x.y/zz": {Partition: awsarn.ISOF, Account: "123456789012", Path: "/aws-service-role/x.y/", Name: "zz"},
	} {
		got, err := awsarn.ParseRole(arn)
		if err != nil || got != want || got.String() != arn {
			t.Errorf("%s: got %+v, %v", arn, got, err)
		}
	}
	for name, arn := range map[string]string{
		"a user":               "arn:aws:iam::123456789012:user/a",
		"a session":            "arn:aws:sts::123456789012:assumed-role/a/b",
		"no account":           "arn:aws:iam:::role/a",
		"a region":             "arn:aws:iam:eu-west-1:123456789012:role/a",
		"no name":              "arn:aws:iam::123456789012:role/",
		"a path alone":         "arn:aws:iam::123456789012:role/a/",
		"65 characters":        "arn:aws:iam::123456789012:role/" + strings.Repeat("a", 65),
		"an unknown partition": "arn:aws-x:iam::123456789012:role/a",
		"a blank":              "arn:aws:iam::123456789012:role/a b",
		"a blank in the path":  "arn:aws:iam::123456789012:role/a b/c",
	} {
		_, err := awsarn.ParseRole(arn)
		if _, ok := errors.AsType[*awsarn.Error](err); !ok || !strings.HasSuffix(err.Error(), "; the form is arn:aws:iam::ACCOUNT:role/NAME") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseIssuer(t *testing.T) {
	t.Parallel()
	const issuer = "oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
	for _, s := range []string{issuer, "https://" + issuer} {
		if got, err := awsarn.ParseIssuer(s); err != nil || got != issuer {
			t.Errorf("%s: got %q, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "https://", "http://" + issuer, "localhost", issuer + "/", issuer + "?x=1", "user@" + issuer, "a.example.com:443/x",
		"a.example.com//x", "https://https://" + issuer, "arn:aws:iam::123456789012:oidc-provider/" + issuer, "a.b/" + strings.Repeat("x", 255), `a.b/"`,
	} {
		if _, err := awsarn.ParseIssuer(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	provider := awsarn.Provider{Partition: awsarn.China, Account: "123456789012", Issuer: issuer}
	if got := provider.String(); got != "arn:aws-cn:iam::123456789012:oidc-provider/"+issuer {
		t.Errorf("got %s", got)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	_, err := awsarn.ParseCluster(strings.Repeat("x", 10_000))
	if len(err.Error()) > 300 {
		t.Errorf("the error has %d characters", len(err.Error()))
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for partition, want := range map[awsarn.Partition]string{
		awsarn.AWS:      "sts.r.amazonaws.com",
		awsarn.GovCloud: "sts.r.amazonaws.com",
		awsarn.China:    "sts.r.amazonaws.com.cn",
		awsarn.ISO:      "sts.r.c2s.ic.gov",
		awsarn.ISOB:     "sts.r.sc2s.sgov.gov",
		awsarn.ISOE:     "sts.r.cloud.adc-e.uk",
		awsarn.ISOF:     "sts.r.csp.hci.ic.gov",
		awsarn.EUSC:     "sts.r.amazonaws.eu",
	} {
		if got := partition.STSHost("r"); got != want {
			t.Errorf("%s: got %s", partition, got)
		}
	}
	if got := awsarn.Partition("aws-moon").DNSSuffix(); got != "" {
		t.Errorf("an unknown partition has the domain %s", got)
	}
}

// FuzzParse: what is accepted is written again as it was read, and its parts
// hold none of the characters that separate them.
func FuzzParse(f *testing.F) {
	f.Add("arn:aws:eks:eu-west-1:123456789012:cluster/hub")
	f.Add("arn:aws-cn:iam::123456789012:role/team/a")
	f.Add("https://oidc.eks.eu-west-1.amazonaws.com/id/A")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := awsarn.ParseCluster(s); err == nil {
			if c.String() != s || strings.ContainsAny(c.Name+c.Account+c.Region, ":/#*\n") || len(c.Account) != 12 {
				t.Errorf("%q is read as %+v", s, c)
			}
		}
		if r, err := awsarn.ParseRole(s); err == nil {
			if r.String() != s || strings.ContainsAny(r.Name, ":/*\n") || len(r.Name) > awsarn.MaxRoleName {
				t.Errorf("%q is read as %+v", s, r)
			}
		}
		if issuer, err := awsarn.ParseIssuer(s); err == nil && strings.ContainsAny(issuer, ":\"#*?@\n") {
			t.Errorf("%q is read as %q", s, issuer)
		}
	})
}
