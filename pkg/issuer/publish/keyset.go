package publish

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// KeySet is a key set in its published form: only keys that can verify tokens, with
// nothing but their public halves, in a fixed order. The same keys always produce the
// same bytes, whichever API server served them.
type KeySet struct {
	// JSON is the set in the form of RFC 7517 section 5.
	JSON []byte
	// Keys are the keys in it, by id.
	Keys []jwk.Key
}

// member is a key with the members of RFC 7518 sections 6.2.1 and 6.3.1.
type member struct {
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	Modulus   string `json:"n,omitempty"`
	Exponent  string `json:"e,omitempty"`
}

// Canonical returns the key set in data as it is published. A set without a key
// that can be used is an error.
func Canonical(data []byte) (KeySet, error) {
	set, err := jwk.Parse(data)
	if err != nil {
		return KeySet{}, err
	}
	return Encode(set.Keys)
}

// Encode returns the key set of keys.
func Encode(given []jwk.Key) (KeySet, error) {
	keys := slices.SortedFunc(slices.Values(given), func(a, b jwk.Key) int { return cmp.Compare(a.ID, b.ID) })
	members := make([]member, 0, len(keys))
	for _, key := range keys {
		m, err := encode(key)
		if err != nil {
			return KeySet{}, err
		}
		members = append(members, m)
	}
	canonical, err := json.Marshal(map[string][]member{"keys": members})
	if err != nil {
		return KeySet{}, fmt.Errorf("encode the key set: %w", err)
	}
	return KeySet{JSON: canonical, Keys: keys}, nil
}

func encode(key jwk.Key) (member, error) {
	m := member{ID: key.ID, Use: "sig", Algorithm: key.Algorithm}
	text := base64.RawURLEncoding.EncodeToString
	switch public := key.Public.(type) {
	case *rsa.PublicKey:
		m.Type, m.Modulus = "RSA", text(public.N.Bytes())
		m.Exponent = text(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 0x04, then both coordinates in full length.
		if err != nil {
			return m, fmt.Errorf("key %s: %w", key.ID, err)
		}
		half := (len(point) - 1) / 2
		m.Type, m.Curve = "EC", public.Curve.Params().Name
		m.X, m.Y = text(point[1:1+half]), text(point[1+half:])
	default:
		return m, fmt.Errorf("key %s: a %T cannot be published", key.ID, key.Public)
	}
	return m, nil
}
