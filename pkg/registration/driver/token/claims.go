package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// maxToken is the size in bytes beyond which nothing is taken for a token:
// those of ServiceAccounts have about one kilobyte.
const maxToken = 64 << 10

// claims are the claims of a ServiceAccount's token. They are not verified: a user who
// writes other claims into the Secret gets a token that the hub rejects.
type claims struct {
	IssuedAt   *float64 `json:"iat"`
	NotBefore  *float64 `json:"nbf"`
	Expires    *float64 `json:"exp"`
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// parse reads the claims of a token in the JWS compact serialization. Errors
// wrap one of package credential's problems and hold nothing of the token.
func parse(token []byte) (*claims, error) {
	switch {
	case len(token) == 0:
		return nil, fmt.Errorf("no %s: %w", names.KeyToken, credential.ErrMissing)
	case len(token) > maxToken:
		return nil, fmt.Errorf("%w: a token has no %d bytes", credential.ErrMalformed, len(token))
	}
	parts := bytes.Split(token, []byte("."))
	if bytes.ContainsAny(token, "\r\n") { // The decoder would pass over them.
		return nil, fmt.Errorf("%w: the token has more than one line", credential.ErrMalformed)
	}
	if len(parts) != 3 || len(parts[0]) == 0 || len(parts[2]) == 0 {
		return nil, fmt.Errorf("%w: the token has not the three parts of a JSON Web Token", credential.ErrMalformed)
	}
	var payload []byte
	for i, part := range parts {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(string(part))
		if err != nil {
			return nil, fmt.Errorf("%w: a part of the token is not base64url", credential.ErrMalformed)
		}
		if i == 1 {
			payload = decoded
		}
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("%w: the claims of the token are not those of a ServiceAccount", credential.ErrMalformed)
	}
	return &c, nil
}

// validFor returns the validity of the token as one of account. An empty UID of account
// matches any.
func (c *claims) validFor(account names.TokenServiceAccount) (credential.Validity, error) {
	k := c.Kubernetes
	if k.Namespace == "" || k.ServiceAccount.Name == "" || k.ServiceAccount.UID == "" {
		return credential.Validity{}, fmt.Errorf("%w: the token is not a ServiceAccount token", credential.ErrMalformed)
	}
	if k.Namespace != account.Namespace || k.ServiceAccount.Name != account.Name {
		return credential.Validity{}, fmt.Errorf("%w: the token is one of ServiceAccount %s and not of %s/%s",
			credential.ErrWrongIdentity, quote(k.Namespace+"/"+k.ServiceAccount.Name), account.Namespace, account.Name)
	}
	if account.UID != "" && k.ServiceAccount.UID != account.UID {
		return credential.Validity{}, fmt.Errorf("%w: the token is one of an earlier ServiceAccount %s/%s, with UID %s and not %s",
			credential.ErrWrongIdentity, account.Namespace, account.Name, quote(k.ServiceAccount.UID), quote(account.UID))
	}
	return c.validity()
}

func (c *claims) validity() (credential.Validity, error) {
	begin := c.IssuedAt
	if begin == nil {
		begin = c.NotBefore
	}
	notBefore, ok1 := numericDate(begin)
	notAfter, ok2 := numericDate(c.Expires)
	if !ok1 || !ok2 || !notAfter.After(notBefore) {
		return credential.Validity{}, fmt.Errorf("%w: the token has no valid time of issue and expiry", credential.ErrMalformed)
	}
	return credential.Validity{NotBefore: notBefore, NotAfter: notAfter}, nil
}

// numericDate parses a NumericDate of RFC 7519. Years after 9999 are rejected, because
// RFC 3339 cannot represent them.
func numericDate(seconds *float64) (time.Time, bool) {
	const year9999 = 253402300799
	if seconds == nil || math.IsNaN(*seconds) || *seconds < 0 || *seconds > year9999 {
		return time.Time{}, false
	}
	whole, part := math.Modf(*seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), true
}
