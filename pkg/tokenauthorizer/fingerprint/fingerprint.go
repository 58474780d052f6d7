package fingerprint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// Sum is the fingerprint of a token.
type Sum [sha256.Size]byte

// Short is the first 12 hexadecimal digits, for logs.
func (s Sum) Short() string {
	const digits = 12
	return hex.EncodeToString(s[:digits/2])
}

// Hasher makes fingerprints. It may be used by many goroutines.
type Hasher struct {
	states sync.Pool
}

// state is the working memory of one call, kept so that a call allocates nothing.
type state struct {
	mac    hash.Hash
	buffer [1024]byte
	sum    []byte
}

// New returns a Hasher with a random key.
func New() *Hasher {
	var key [sha256.Size]byte
	_, _ = rand.Read(key[:]) // Never fails: it ends the program instead.
	return &Hasher{states: sync.Pool{New: func() any {
		return &state{mac: hmac.New(sha256.New, key[:]), sum: make([]byte, 0, sha256.Size)}
	}}}
}

// Sum returns the fingerprint of token.
func (h *Hasher) Sum(token string) Sum {
	s := h.states.Get().(*state) //nolint:errcheck,forcetypeassert // The pool holds nothing else.
	defer h.states.Put(s)
	s.mac.Reset()
	for len(token) > 0 {
		n := copy(s.buffer[:], token)
		s.mac.Write(s.buffer[:n])
		token = token[n:]
	}
	clear(s.buffer[:])
	return Sum(s.mac.Sum(s.sum))
}
