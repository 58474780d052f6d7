package content

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// summaryKey is the key of the Summary in a Secret whose data was replaced. The
// API server accepts no Secret of the types without the key of the data, so a
// Secret with this key alone was never stored.
const summaryKey = "summary"

// Summary summarizes the data of a pull secret.
type Summary struct {
	// Problem says why the data cannot be used; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Format is how it is stored.
	Format Format `json:"format"`
	// Tokens are the tokens in it, by their first host. Without any, and without a
	// problem, the pull secret is new.
	Tokens []Token `json:"tokens,omitempty"`
}

// Token summarizes one token.
type Token struct {
	// Hosts are the token's registries, sorted.
	Hosts []string `json:"hosts"`
	// Username is sent with the token.
	Username string `json:"username,omitempty"`
	// KeyID names the key that signed the token.
	KeyID string `json:"kid,omitempty"`
	// Audiences, AccountUID and SecretUID say what the token is for, and what it
	// is bound to.
	Audiences  []string `json:"audiences,omitempty"`
	AccountUID string   `json:"accountUID,omitempty"`
	SecretUID  string   `json:"secretUID,omitempty"`
	// Issued and Expires are seconds since the epoch.
	Issued  int64 `json:"issued,omitempty"`
	Expires int64 `json:"expires,omitempty"`
}

// Missing reports whether there is no token yet.
func (s Summary) Missing() bool { return s.Problem == "" && len(s.Tokens) == 0 }

// Validity is from when to when the token is good that expires first.
func (s Summary) Validity() credential.Validity {
	if len(s.Tokens) == 0 {
		return credential.Validity{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(0, 0)}
	}
	first := slices.MinFunc(s.Tokens, func(a, b Token) int { return cmp.Compare(a.Expires, b.Expires) })
	return credential.Validity{NotBefore: time.Unix(first.Issued, 0), NotAfter: time.Unix(first.Expires, 0)}
}

// Usable reports whether pulls with the data can succeed at now.
func (s Summary) Usable(now time.Time) bool {
	return s.Problem == "" && !s.Missing() && !s.Validity().Expired(now)
}

// Hosts are the registries of all tokens, sorted.
func (s Summary) Hosts() []string {
	var hosts []string
	for _, t := range s.Tokens {
		hosts = append(hosts, t.Hosts...)
	}
	slices.Sort(hosts)
	return hosts
}

// Summarize replaces the data of a Secret by its Summary. It is a transformation
// of caches: what it was applied to it leaves alone.
func Summarize(secret *corev1.Secret) error {
	if summarized(secret) {
		return nil
	}
	encoded, err := json.Marshal(read(secret))
	if err != nil {
		return fmt.Errorf("summarize the pull secret: %w", err)
	}
	secret.Data = map[string][]byte{summaryKey: encoded}
	return nil
}

// Of returns the Summary of a Secret, whether its data was replaced or not.
func Of(secret *corev1.Secret) Summary {
	if !summarized(secret) {
		return read(secret)
	}
	var s Summary
	if err := json.Unmarshal(secret.Data[summaryKey], &s); err != nil {
		return Summary{Problem: "the summary is invalid"}
	}
	return s
}

func summarized(secret *corev1.Secret) bool {
	_, summary := secret.Data[summaryKey]
	return summary && len(secret.Data) == 1
}

// read summarizes data. What it says quotes nothing of it.
func read(secret *corev1.Secret) Summary {
	s := Summary{Format: formatOf(secret.Data)}
	found, err := s.Format.decode(secret.Data)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	shared := map[string][]string{}
	for _, host := range slices.Sorted(maps.Keys(found)) {
		auth := found[host].Auth
		shared[auth] = append(shared[auth], host)
	}
	for _, auth := range slices.Sorted(maps.Keys(shared)) {
		t, err := newToken(auth, shared[auth])
		if err != nil {
			s.Problem = err.Error()
		}
		s.Tokens = append(s.Tokens, t)
	}
	slices.SortFunc(s.Tokens, func(a, b Token) int { return strings.Compare(a.Hosts[0], b.Hosts[0]) })
	return s
}

// newToken reads a credential: user, colon and token in base64.
func newToken(auth string, hosts []string) (Token, error) {
	t := Token{Hosts: hosts}
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return t, errors.New("the credential is not base64")
	}
	username, token, ok := strings.Cut(string(decoded), ":")
	if !ok {
		return t, errors.New("the credential is not a user and a password")
	}
	t.Username = username
	return t, t.read(token)
}

// read reads what a token says about itself.
func (t *Token) read(token string) error {
	var claims struct {
		Audiences  []string `json:"aud"`
		Issued     int64    `json:"iat"`
		Expires    int64    `json:"exp"`
		Kubernetes struct {
			Account   reference `json:"serviceaccount"`
			Secret    reference `json:"secret"`
			WarnAfter int64     `json:"warnafter"`
		} `json:"kubernetes.io"`
	}
	parsed, err := jwk.ParseToken(token)
	if err != nil || parsed.UnverifiedClaims(&claims) != nil {
		return errors.New("the password is not a token of a ServiceAccount")
	}
	t.KeyID, t.Audiences = parsed.KeyID(), claims.Audiences
	t.AccountUID, t.SecretUID = claims.Kubernetes.Account.UID, claims.Kubernetes.Secret.UID
	t.Issued, t.Expires = claims.Issued, claims.Expires
	if claims.Kubernetes.WarnAfter > 0 { // The API server put the expiry off for clients that do not renew.
		t.Expires = claims.Kubernetes.WarnAfter
	}
	return nil
}

type reference struct {
	UID string `json:"uid"`
}
