package content

import (
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwt"
)

// summaryKey is the key of the Summary in a Secret whose data was replaced. The
// API server accepts no Secret of the type without the key of the data, so a
// Secret with this key alone was never stored.
const summaryKey = "summary"

// Summary is what is known of the data of a pull secret.
type Summary struct {
	// Problem says why the data is no good; empty if it is.
	Problem string `json:"problem,omitempty"`
	// Missing says that there is no token in it, which is how it begins.
	Missing bool `json:"missing,omitempty"`
	// Hosts are the registries that it has a token for, sorted.
	Hosts []string `json:"hosts,omitempty"`
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

// Validity is from when to when the token is good.
func (s Summary) Validity() credential.Validity {
	return credential.Validity{NotBefore: time.Unix(s.Issued, 0), NotAfter: time.Unix(s.Expires, 0)}
}

// Usable reports whether a pull with the data can succeed at now.
func (s Summary) Usable(now time.Time) bool {
	return s.Problem == "" && !s.Missing && !s.Validity().Expired(now)
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
		return Summary{Problem: "the summary cannot be read"}
	}
	return s
}

func summarized(secret *corev1.Secret) bool {
	_, data := secret.Data[corev1.DockerConfigJsonKey]
	_, summary := secret.Data[summaryKey]
	return summary && !data
}

// read summarizes data. What it says quotes nothing of it.
func read(secret *corev1.Secret) Summary {
	var c config
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &c); err != nil {
		return Summary{Problem: "the data is not JSON"}
	}
	if len(c.Auths) == 0 {
		return Summary{Missing: true}
	}
	s := Summary{Hosts: slices.Sorted(maps.Keys(c.Auths))}
	token, err := s.credential(c)
	if err == nil {
		err = s.claims(token)
	}
	if err != nil {
		s.Problem = err.Error()
	}
	return s
}

// credential reads the user and returns the token, which all hosts have in common.
func (s *Summary) credential(c config) (token string, err error) {
	auth := c.Auths[s.Hosts[0]].Auth
	for _, host := range s.Hosts {
		if c.Auths[host].Auth != auth {
			return "", errors.New("the registries have different credentials")
		}
	}
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", errors.New("the credential is not base64")
	}
	username, token, ok := strings.Cut(string(decoded), ":")
	if !ok {
		return "", errors.New("the credential is not a user and a password")
	}
	s.Username = username
	return token, nil
}

// claims reads what the token says about itself.
func (s *Summary) claims(token string) error {
	var header struct {
		KeyID string `json:"kid"`
	}
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
	if jwt.Header(token, &header) != nil || jwt.Claims(token, &claims) != nil {
		return errors.New("the password is not a token of a ServiceAccount")
	}
	s.KeyID, s.Audiences = header.KeyID, claims.Audiences
	s.AccountUID, s.SecretUID = claims.Kubernetes.Account.UID, claims.Kubernetes.Secret.UID
	s.Issued, s.Expires = claims.Issued, claims.Expires
	if claims.Kubernetes.WarnAfter > 0 { // The API server put the expiry off for clients that do not renew.
		s.Expires = claims.Kubernetes.WarnAfter
	}
	return nil
}

type reference struct {
	UID string `json:"uid"`
}
