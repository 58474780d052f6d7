package token_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
)

// stored is what is in a pull secret.
type stored struct {
	hosts                            []string
	username, audience, account, kid string
	secret                           string
	empty                            bool
	secretType                       corev1.SecretType
}

// pullSecret is the Secret s1 with a token of an hour from the epoch on.
func (s stored) pullSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "s1"}, Type: s.secretType}
	if s.empty {
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{}`)}
		return secret
	}
	encode := base64.RawURLEncoding.EncodeToString
	header := fmt.Sprintf(`{"alg":"RS256","kid":%q}`, s.kid)
	claims := fmt.Sprintf(`{"aud":[%q],"iat":0,"exp":3600,"kubernetes.io":{"serviceaccount":{"uid":%q},"secret":{"uid":%q}}}`, s.audience, s.account, s.secret)
	data, err := content.Encode(content.DockerConfigJSON, content.Credential{
		Hosts: s.hosts, Username: s.username, Token: encode([]byte(header)) + "." + encode([]byte(claims)) + ".c2ln",
	})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = data
	return secret
}

// TestWhyATokenIsReplaced: every cause by itself, and none without a cause. The
// cause that makes a token useless is reported before the one that limits it.
func TestWhyATokenIsReplaced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*stored)
		at     time.Duration
		want   credential.Reason
	}{
		{name: "a good token stays", at: 23 * time.Minute},
		{name: "no token", change: func(s *stored) { s.empty = true }, want: credential.Missing},
		{name: "another ServiceAccount of that name", change: func(s *stored) { s.account = "a2" }, want: credential.WrongIdentity},
		{name: "bound to another Secret", change: func(s *stored) { s.secret = "s2" }, want: credential.WrongIdentity},
		{name: "bound to no Secret", change: func(s *stored) { s.secret = "" }, want: credential.WrongIdentity},
		{name: "another audience", change: func(s *stored) { s.audience = "api" }, want: credential.WrongIdentity},
		{name: "a retired key", change: func(s *stored) { s.kid = "old" }, want: credential.SignerRetired},
		{name: "a retired key before other hosts", change: func(s *stored) { s.kid, s.hosts = "old", []string{"r3"} }, want: credential.SignerRetired},
		{name: "a host too many", change: func(s *stored) { s.hosts = []string{"r1", "r2", "r3"} }, want: credential.ServersChanged},
		{name: "a host too few", change: func(s *stored) { s.hosts = []string{"r1"} }, want: credential.ServersChanged},
		{name: "another host", change: func(s *stored) { s.hosts = []string{"r1", "r3"} }, want: credential.ServersChanged},
		{name: "another user name", change: func(s *stored) { s.username = "other" }, want: credential.ServersChanged},
		{name: "another format", change: func(s *stored) { s.secretType = corev1.SecretTypeDockercfg }, want: credential.ServersChanged},
		{name: "60 % of its life are used", at: 36 * time.Minute, want: credential.NearExpiry},
		{name: "it expired", at: time.Hour, want: credential.Expired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := stored{hosts: []string{"r1", "r2"}, username: "user", audience: "registry", account: "a1", secret: "s1", kid: "new"}
			if tc.change != nil {
				tc.change(&s)
			}
			hosts := []content.Host{{Name: "r1", Audience: "registry"}, {Name: "r2", Audience: "registry"}}
			facts := token.Inspect(s.pullSecret(t), token.Spec{Username: "user", Format: content.DockerConfigJSON}, hosts, "a1",
				func(kid string) bool { return kid == "old" })
			if need, _ := credential.Due().Evaluate(facts, time.Unix(0, 0).Add(tc.at)); need.Reason != tc.want {
				t.Errorf("%+v, want %q", need, tc.want)
			}
		})
	}
}

// TestAudienceOfTheAPIServer: where no audience is asked for, whatever the API
// server calls itself is right.
func TestAudienceOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := stored{hosts: []string{"r1"}, audience: "https://kubernetes.default.svc", account: "a1", secret: "s1"}
	spec := token.Spec{Format: content.DockerConfigJSON}
	keep := func(string) bool { return false }
	if facts := token.Inspect(s.pullSecret(t), spec, []content.Host{{Name: "r1"}}, "a1", keep); facts.Problem != nil {
		t.Error(facts.Problem)
	}
	s.audience, s.hosts = "registry", []string{"r1", "r2"}
	hosts := []content.Host{{Name: "r1"}, {Name: "r2", Audience: "registry"}}
	if facts := token.Inspect(s.pullSecret(t), spec, hosts, "a1", keep); !errors.Is(facts.Problem, credential.ErrWrongIdentity) {
		t.Errorf("a registry's token for the API server: %v", facts.Problem)
	}
}
