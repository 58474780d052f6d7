package csr

// VetKey is vetKey: a request with some of the keys that it refuses cannot be
// signed, so that only a direct call reaches the refusal.
var VetKey = vetKey
