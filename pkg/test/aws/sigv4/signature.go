package sigv4

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Algorithm is the only one that is verified.
const Algorithm = "AWS4-HMAC-SHA256"

const dateFormat = "20060102T150405Z"

// What a request lacks.
var (
	// ErrUnsigned says that a request has no signature at all.
	ErrUnsigned = errors.New("missing authentication token")
	// ErrIncomplete says that a signature cannot be read.
	ErrIncomplete = errors.New("incomplete signature")
	// ErrMismatch says that the request is not what was signed, or not by this key.
	ErrMismatch = errors.New("the request signature we calculated does not match the signature you provided")
	// ErrExpired says that the request was signed too long ago.
	ErrExpired = errors.New("signature expired")
	// ErrEarly says that the request was signed in the future.
	ErrEarly = errors.New("signature not yet current")
)

// Signature is the signature of a request, with its parameters.
type Signature struct {
	// AccessKey is the id of the key that signed.
	AccessKey string
	// Token is the session token, empty for the keys of users.
	Token string
	// Region and Service are the signature's scope.
	Region, Service string
	// Time is when it was signed.
	Time time.Time
	// Headers are the names of the signed headers, in lower case.
	Headers []string
	// Presigned says that the signature is in the query.
	Presigned bool

	date, scope, value string
}

// Parse reads the signature of a request. It verifies nothing.
func Parse(r *http.Request) (*Signature, error) {
	query := r.URL.Query()
	header := r.Header.Get("Authorization")
	var s *Signature
	var credential, headers string
	switch {
	case header != "":
		rest, ok := strings.CutPrefix(header, Algorithm+" ")
		if !ok {
			return nil, fmt.Errorf("%w: the algorithm is not %s", ErrIncomplete, Algorithm)
		}
		fields := fields(rest)
		credential, headers = fields["Credential"], fields["SignedHeaders"]
		s = &Signature{Token: r.Header.Get("X-Amz-Security-Token"), date: r.Header.Get("X-Amz-Date"), value: fields["Signature"]}
	case query.Get("X-Amz-Algorithm") == Algorithm:
		credential, headers = query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders")
		s = &Signature{
			Token: query.Get("X-Amz-Security-Token"), date: query.Get("X-Amz-Date"),
			value: query.Get("X-Amz-Signature"), Presigned: true,
		}
	default:
		return nil, ErrUnsigned
	}
	return s, s.read(credential, headers)
}

// read takes credential scope, date and header names apart.
func (s *Signature) read(credential, headers string) error {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != "aws4_request" {
		return fmt.Errorf("%w: the credential scope is %q", ErrIncomplete, credential)
	}
	var err error
	if s.Time, err = time.Parse(dateFormat, s.date); err != nil || !strings.HasPrefix(s.date, parts[1]) {
		return fmt.Errorf("%w: the date %q does not fit the credential scope %q", ErrIncomplete, s.date, credential)
	}
	s.AccessKey, s.Region, s.Service = parts[0], parts[2], parts[3]
	s.scope = strings.Join(parts[1:], "/")
	s.Headers = strings.Split(headers, ";")
	if !slices.Contains(s.Headers, "host") || !slices.IsSorted(s.Headers) {
		return fmt.Errorf("%w: the signed headers are %q", ErrIncomplete, headers)
	}
	return nil
}

// CheckTime checks the age of a signature: at most life, and at most skew ahead
// of now.
func (s *Signature) CheckTime(now time.Time, life, skew time.Duration) error {
	switch age := now.Sub(s.Time); {
	case age > life:
		return fmt.Errorf("%w: %s is now earlier than %s (%s - %s)", ErrExpired,
			s.date, now.Add(-life).UTC().Format(dateFormat), now.UTC().Format(dateFormat), life)
	case age < -skew:
		return fmt.Errorf("%w: %s is still later than %s (%s + %s)", ErrEarly,
			s.date, now.Add(skew).UTC().Format(dateFormat), now.UTC().Format(dateFormat), skew)
	}
	return nil
}

// fields reads "A=1, B=2".
func fields(text string) map[string]string {
	values := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		values[key] = value
	}
	return values
}
