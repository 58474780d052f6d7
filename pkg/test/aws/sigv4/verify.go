package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Verify reports ErrMismatch unless the key with that secret signed exactly this
// request. It does not look at the time; see CheckTime.
func (s *Signature) Verify(r *http.Request, body []byte, secret string) error {
	hash := digest(body)
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" && claimed != hash {
		return fmt.Errorf("%w: the body has another hash than X-Amz-Content-Sha256", ErrMismatch)
	}
	canonical := strings.Join([]string{
		r.Method, path(r.URL), query(r.URL.Query()), s.headers(r), strings.Join(s.Headers, ";"), hash,
	}, "\n")
	toSign := strings.Join([]string{Algorithm, s.date, s.scope, digest([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(s.scope, "/") {
		key = sum(key, part)
	}
	if !hmac.Equal([]byte(hex.EncodeToString(sum(key, toSign))), []byte(s.value)) {
		return ErrMismatch
	}
	return nil
}

// headers is the canonical form of the signed headers.
func (s *Signature) headers(r *http.Request) string {
	var b strings.Builder
	for _, name := range s.Headers {
		value := strings.Join(r.Header.Values(name), ",")
		switch name { // net/http keeps these two apart from the others.
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&b, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	return b.String()
}

// path is the canonical path: every service but S3 encodes it a second time.
func path(u *url.URL) string {
	segments := strings.Split(u.EscapedPath(), "/")
	for i := range segments {
		segments[i] = escape(segments[i])
	}
	if joined := strings.Join(segments, "/"); joined != "" {
		return joined
	}
	return "/"
}

// query is the canonical query, without the signature itself.
func query(values url.Values) string {
	var pairs []string
	for key, list := range values {
		if key == "X-Amz-Signature" {
			continue
		}
		for _, value := range list {
			pairs = append(pairs, escape(key)+"="+escape(value))
		}
	}
	// By the key first: "=" is greater than some characters of longer keys.
	slices.SortFunc(pairs, func(a, b string) int {
		return slices.Compare(strings.SplitN(a, "=", 2), strings.SplitN(b, "=", 2))
	})
	return strings.Join(pairs, "&")
}

// escape encodes everything but letters, digits and -._~ (RFC 3986).
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func digest(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

func sum(key []byte, data string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(data))
	return mac.Sum(nil)
}
