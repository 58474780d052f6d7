package subject

import (
	"encoding/base64"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/strictjson"
)

// MaxTokenBytes is the longest token that is looked at; those of Kubernetes
// have about a thousand bytes.
const MaxTokenBytes = 16 << 10

// maxKeyIDBytes is the longest "kid" that is looked up. No key has a longer one.
const maxKeyIDBytes = 256

// compact is a token in its three parts (RFC 7515 §7.1).
type compact struct {
	signed                     string // Header and payload as they came.
	header, payload, signature []byte
}

// split decodes the parts of a token. There is one way to write a token: base64url
// without padding, without line breaks, and without bits that mean nothing.
func split(token string) (compact, *verdict.Error) {
	if n := strings.Count(token, ".") + 1; n != 3 {
		return compact{}, verdict.Refuse(verdict.Malformed, "it has %d segments where a signed token has 3", n)
	}
	end := strings.LastIndexByte(token, '.')
	header, payload, _ := strings.Cut(token[:end], ".")
	c := compact{signed: token[:end]}
	for _, part := range []struct {
		name string
		text string
		data *[]byte
	}{
		{"header", header, &c.header},
		{"payload", payload, &c.payload},
		{"signature", token[end+1:], &c.signature},
	} {
		if part.text == "" {
			return compact{}, verdict.Refuse(verdict.Malformed, "its %s is empty", part.name)
		}
		data, err := base64.RawURLEncoding.Strict().DecodeString(part.text)
		if err != nil || strings.ContainsAny(part.text, "\r\n") { // Which the decoder skips.
			return compact{}, verdict.Refuse(verdict.Malformed, "its %s is not base64url without padding", part.name)
		}
		*part.data = data
	}
	return c, nil
}

// header is what of a JOSE header counts. The members that bring or name a key
// (jwk, jku, x5c, x5u) are never looked at: RFC 8725 §3.10.
type header struct {
	algorithm, keyID, kind string
	critical               bool
}

func parseHeader(data []byte) (header, *verdict.Error) {
	var h header
	err := strictjson.Object(data, func(name []byte, r *strictjson.Reader) (err error) {
		switch string(name) {
		case "alg":
			h.algorithm, err = r.String()
		case "kid":
			h.keyID, err = r.String()
		case "typ":
			h.kind, err = r.String()
		case "crit":
			h.critical = true
			err = r.Skip()
		default:
			err = r.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return header{}, verdict.Refuse(verdict.Malformed, "its header: %w", err)
	case !jwk.Allowed(h.algorithm):
		return header{}, verdict.Refuse(verdict.Malformed,
			"its algorithm is %q; RS256, RS384, RS512, ES256, ES384 and ES512 are taken", clip(h.algorithm))
	case h.critical:
		return header{}, verdict.Refuse(verdict.Malformed, "its header has critical extensions (crit), and none is understood")
	case h.kind != "" && !strings.EqualFold(h.kind, "JWT"):
		// Another kind of JWT must not pass for a ServiceAccount's (RFC 8725 §3.11).
		return header{}, verdict.Refuse(verdict.Malformed, "its type is %q where JWT or none is taken", clip(h.kind))
	}
	return h, nil
}

// clip bounds what is told of something that nobody vouches for.
func clip(text string) string { return excerpt.Of(text, 128) }
