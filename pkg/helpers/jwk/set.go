package jwk

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a key set. Kubernetes publishes one or two keys, about 500 bytes each.
const (
	// MaxBytes is how long a key set may be.
	MaxBytes = 1 << 20
	// MaxKeys is how many JWKs a key set may hold, ignored ones included.
	MaxKeys = 64
)

// Why a key set is refused as a whole. Parse wraps one of these.
var (
	// ErrEmpty: nothing in the set can verify a signature.
	ErrEmpty = errors.New("the key set has no usable key")
	// ErrSecret: the set holds a private or a symmetric key, which must be
	// considered lost.
	ErrSecret = errors.New("the key set holds secret key material")
	// ErrTooLarge: the set exceeds MaxBytes or MaxKeys.
	ErrTooLarge = errors.New("the key set is too large")
	// ErrDuplicate: a JSON member or a key id means two things.
	ErrDuplicate = errors.New("the key set is ambiguous")
	// ErrMalformed: the data is not a key set.
	ErrMalformed = errors.New("not a JSON Web Key Set")
)

// Set is a key set as far as it can be used.
type Set struct {
	// Keys in the order of the document, never empty after Parse.
	Keys []Key
	// Ignored is how many JWKs are not understood or not for us (RFC 7517 §5).
	Ignored int
	// Reasons says, for every ignored JWK, why.
	Reasons []string
}

// Parse reads a key set. JWKs that are of an unknown kind, too weak, or not for
// verifying signatures are left out and counted; a JWK with secret members, a
// key id that stands for two keys, a repeated JSON member and a set without any
// usable key are errors. A key that is listed twice counts once.
func Parse(data []byte) (Set, error) {
	if len(data) > MaxBytes {
		return Set{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), MaxBytes)
	}
	document, err := Object(data)
	switch {
	case errors.Is(err, errRepeated):
		return Set{}, fmt.Errorf("%w: %w", ErrDuplicate, err)
	case err != nil:
		return Set{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	value, ok := document["keys"]
	list, array := value.([]any)
	if !ok || !array && value != nil {
		return Set{}, errKeys
	}
	if len(list) > MaxKeys {
		return Set{}, fmt.Errorf("%w: %d keys, the limit is %d", ErrTooLarge, len(list), MaxKeys)
	}
	members := make([]map[string]any, len(list))
	for i := range list {
		if members[i], ok = list[i].(map[string]any); !ok {
			return Set{}, errKeys
		}
	}
	return collect(members)
}

var errKeys = fmt.Errorf(`%w: its member "keys" is not an array of objects`, ErrMalformed)

func collect(members []map[string]any) (Set, error) {
	var set Set
	thumbprints := make(map[string]string, len(members)) // By kid.
	for i, member := range members {
		if name, ok := secret(member); ok {
			return Set{}, fmt.Errorf("%w: keys[%d] has the member %q; publish public keys only and replace this one",
				ErrSecret, i, name)
		}
		key, err := parseKey(member)
		if err != nil {
			set.Ignored++
			set.Reasons = append(set.Reasons, fmt.Sprintf("keys[%d]: %v", i, err))
			continue
		}
		switch seen, ok := thumbprints[key.ID]; {
		case !ok:
			thumbprints[key.ID] = key.Thumbprint
			set.Keys = append(set.Keys, key)
		case seen != key.Thumbprint:
			return Set{}, fmt.Errorf("%w: two different keys have the id %q", ErrDuplicate, key.ID)
		}
	}
	if len(set.Keys) == 0 && set.Ignored > 0 {
		return Set{}, fmt.Errorf("%w: %s", ErrEmpty, strings.Join(set.Reasons, "; "))
	}
	if len(set.Keys) == 0 {
		return Set{}, ErrEmpty
	}
	return set, nil
}
