package aws

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/sigv4"
)

// How long a signature lasts and how far clocks may be apart.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
const (
	signatureLife = 5 * time.Minute
	signatureSkew = 5 * time.Minute
	// STS gives presigned requests 15 minutes, regardless of X-Amz-Expires; see
	// the README of aws-iam-authenticator.
	presignedLife = 15 * time.Minute
)

// maxBody is far more than any request has.
const maxBody = 1 << 20

// request is a request to a service, as far as it was understood.
type request struct {
	endpoint

	http *http.Request
	body []byte
	// operation is the called operation, "" if it does not exist.
	operation string
	// form are the parameters of IAM and STS.
	form url.Values
	// path are the segments of the path, of EKS.
	path []string
	// caller is nil for the one operation that needs no signature.
	caller *principal
	call   *Call
}

// newRequest reads a request. It verifies nothing.
func newRequest(r *http.Request) (*request, error) {
	e, ok := parseEndpoint(r.Host)
	if !ok || r.TLS == nil || r.TLS.ServerName != r.Host {
		return nil, fail(http.StatusMisdirectedRequest, "MisdirectedRequest", "there is no %s behind this connection", r.Host)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	q := &request{endpoint: e, http: r, body: body}
	if e.service == "eks" {
		err = q.readPath()
	} else {
		err = q.readForm()
	}
	q.call = &Call{Service: e.service, Operation: q.operation, Host: r.Host}
	return q, err
}

// readForm reads the query protocol of IAM and STS.
func (q *request) readForm() error {
	q.form = q.http.URL.Query()
	if strings.HasPrefix(q.http.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		sent, err := url.ParseQuery(string(q.body))
		if err != nil {
			return err
		}
		for key, values := range sent {
			q.form[key] = append(q.form[key], values...)
		}
	}
	q.operation = q.form.Get("Action")
	return nil
}

// readPath reads the segments of the path, which may contain encoded slashes.
func (q *request) readPath() error {
	for segment := range strings.SplitSeq(strings.Trim(q.http.URL.EscapedPath(), "/"), "/") {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return err
		}
		q.path = append(q.path, decoded)
	}
	q.operation = eksOperation(q.http.Method, q.path)
	return nil
}

// members is a list parameter: name.member.1 and so on, each with a suffix.
func (q *request) members(name, suffix string) []string {
	var values []string
	for i := 1; q.form.Has(name + ".member." + strconv.Itoa(i) + suffix); i++ {
		values = append(values, q.form.Get(name+".member."+strconv.Itoa(i)+suffix))
	}
	return values
}

// tags returns the tags in a request of IAM or STS.
func (q *request) tags() (map[string]string, error) {
	tags := map[string]string{}
	values := q.members("Tags", ".Value")
	for i, key := range q.members("Tags", ".Key") {
		if _, twice := tags[key]; twice || i >= len(values) {
			return nil, invalid("Duplicate tag keys found, or a tag without a value: %s", key)
		}
		tags[key] = values[i]
	}
	return tags, checkTags(tags)
}

// authenticate finds out who signed a request, and sets the caller.
func (c *Cloud) authenticate(q *request) error {
	s, err := sigv4.Parse(q.http)
	switch {
	case errors.Is(err, sigv4.ErrUnsigned):
		return fail(http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
	case err != nil:
		return fail(http.StatusBadRequest, "IncompleteSignature", "%v", err)
	}
	q.call.Presigned = s.Presigned
	if s.Service != q.service || s.Region != q.region {
		return fail(http.StatusForbidden, "SignatureDoesNotMatch",
			"Credential should be scoped to service %q and region %q, not %q and %q", q.service, q.region, s.Service, s.Region)
	}
	p, err := c.holder(s, q.partition)
	if err != nil {
		return err
	}
	if err := s.Verify(q.http, q.body, p.SecretAccessKey); err != nil {
		return fail(http.StatusForbidden, "SignatureDoesNotMatch", "%v", err)
	}
	life := signatureLife
	if s.Presigned {
		life = presignedLife
	}
	if err := s.CheckTime(c.signatureTime(), life, signatureSkew); err != nil {
		return fail(http.StatusForbidden, "SignatureDoesNotMatch", "%v", err)
	}
	if !p.Expires.IsZero() && !c.now().Before(p.Expires) {
		return fail(http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired")
	}
	q.caller, q.call.Caller = p, p.arn
	return nil
}

func (c *Cloud) signatureTime() time.Time { return c.clock.Now().Add(c.skew) }

// holder is who has the key of a signature. Keys are known in their partition
// only, and sessions end with their role.
func (c *Cloud) holder(s *sigv4.Signature, partition string) (*principal, error) {
	p := c.keys[s.AccessKey]
	if p == nil || p.SessionToken != s.Token || p.partition != partition ||
		(p.role != nil && c.roles[p.role.ARN] != p.role) {
		return nil, fail(http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid")
	}
	return p, nil
}

// anonymous reports whether an operation is called without a signature.
func anonymous(operation string) bool {
	return slices.Contains([]string{"AssumeRoleWithWebIdentity"}, operation)
}
