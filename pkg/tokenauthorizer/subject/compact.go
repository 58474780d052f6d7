package subject

import (
	"encoding/base64"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// MaxTokenBytes is the longest accepted token; Kubernetes' tokens have about a thousand
// bytes.
const MaxTokenBytes = 16 << 10

// maxKeyIDBytes is the longest "kid" that is looked up. No key has a longer one.
const maxKeyIDBytes = 256

// compact is the parsed part of a token in its compact form (RFC 7515 §7.1).
type compact struct {
	header, payload []byte
}

// split decodes the parts of a token. There is one way to write a token: base64url
// without padding, without line breaks, and without bits that mean nothing.
func split(token string) (compact, *denial.Error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return compact{}, denial.New(denial.Malformed, "it has %d segments where a signed token has 3", len(parts))
	}
	var decoded [3][]byte
	for i, name := range []string{"header", "payload", "signature"} {
		data, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		switch {
		case parts[i] == "":
			return compact{}, denial.New(denial.Malformed, "its %s is empty", name)
		case err != nil || strings.ContainsAny(parts[i], "\r\n"): // Which the decoder skips.
			return compact{}, denial.New(denial.Malformed, "its %s is not base64url without padding", name)
		}
		decoded[i] = data
	}
	return compact{header: decoded[0], payload: decoded[1]}, nil
}

// header is the relevant part of a JOSE header. The members that contain or name a key
// (jwk, jku, x5c, x5u) are never read: RFC 8725 §3.10.
type header struct {
	algorithm, keyID, kind string
}

func parseHeader(data []byte) (header, *denial.Error) {
	object, err := jwk.Object(data)
	r := reader{err: err}
	h := header{algorithm: r.text(object, "alg"), keyID: r.text(object, "kid"), kind: r.text(object, "typ")}
	_, critical := object["crit"]
	_, unencoded := object["b64"] // RFC 7797, which changes what is signed.
	switch {
	case r.err != nil:
		return header{}, denial.New(denial.Malformed, "its header: %w", r.err)
	case !jwk.Allowed(h.algorithm):
		return header{}, denial.New(denial.Malformed,
			"its algorithm is %q; RS256, RS384, RS512, ES256, ES384 and ES512 are accepted", clip(h.algorithm))
	case critical || unencoded:
		return header{}, denial.New(denial.Malformed, "its header has extensions (crit, b64), and none is understood")
	case h.kind != "" && !strings.EqualFold(h.kind, "JWT"):
		// Another kind of JWT must not pass for a ServiceAccount's (RFC 8725 §3.11).
		return header{}, denial.New(denial.Malformed, "its type is %q where JWT or none is accepted", clip(h.kind))
	}
	return h, nil
}

// clip bounds what is quoted of unverified text.
func clip(text string) string { return excerpt.Of(text, 128) }
