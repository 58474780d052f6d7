package sigv4_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/sigv4"
)

// The key of AWS' examples, and when those were signed.
const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

// vectors are requests as they are on the wire, with signatures that AWS
// published: in the documentation of Signature Version 4 ("ListUsers") and in
// its test suite (the others).
var vectors = map[string]string{
	"ListUsers": `GET /?Action=ListUsers&Version=2010-05-08 HTTP/1.1
Host: iam.amazonaws.com
Content-Type: application/x-www-form-urlencoded; charset=utf-8
X-Amz-Date: 20150830T123600Z
Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7

`,
	"get-vanilla": `GET / HTTP/1.1
Host: example.amazonaws.com
X-Amz-Date: 20150830T123600Z
Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31

`,
	"get-vanilla-query-order-key-case": `GET /?Param2=value2&Param1=value1 HTTP/1.1
Host: example.amazonaws.com
X-Amz-Date: 20150830T123600Z
Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500

`,
	"post-x-www-form-urlencoded": `POST / HTTP/1.1
Host: example.amazonaws.com
Content-Type: application/x-www-form-urlencoded
Content-Length: 13
X-Amz-Date: 20150830T123600Z
Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a

Param1=value1`,
}

// verify verifies a request as it is on the wire.
func verify(t *testing.T, wire, secret string) error {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sigv4.Parse(r)
	if err != nil {
		return err
	}
	return s.Verify(r, body, secret)
}

func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	for name, wire := range vectors {
		if err := verify(t, wire, secret); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := verify(t, wire, secret+"x"); !errors.Is(err, sigv4.ErrMismatch) {
			t.Errorf("%s with another secret: %v", name, err)
		}
	}
}

func TestEveryPartIsVerified(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"method":             {"POST / ", "PUT / "},
		"path":               {"POST / ", "POST /x "},
		"query":              {"POST / ", "POST /?a=b "},
		"host":               {"Host: example.", "Host: Example."},
		"signed header":      {"Content-Type: application/x", "Content-Type: text/x"},
		"date":               {"T123600Z", "T123601Z"},
		"region":             {"/us-east-1/", "/us-east-2/"},
		"service":            {"/service/", "/servicE/"},
		"body":               {"Param1=value1", "Param1=value2"},
		"names of headers":   {"SignedHeaders=content-type;host;", "SignedHeaders=host;"},
		"hash of the body":   {"Content-Length", "X-Amz-Content-Sha256: 00\nContent-Length"},
		"the signature":      {"ff1189", "ff1188"},
		"the day in between": {"X-Amz-Date: 20150830", "X-Amz-Date: 20150831"},
	} {
		wire := strings.Replace(vectors["post-x-www-form-urlencoded"], change[0], change[1], 1)
		if wire == vectors["post-x-www-form-urlencoded"] {
			t.Fatalf("%s was not changed", name)
		}
		if err := verify(t, wire, secret); err == nil {
			t.Errorf("%s changed: still verified", name)
		}
	}
}

func TestUnreadableSignatures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		old, replacement string
		want             error
	}{
		"none":              {"Authorization: AWS4", "X-Other: AWS4", sigv4.ErrUnsigned},
		"another algorithm": {"AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", sigv4.ErrIncomplete},
		"a short scope":     {"/aws4_request", "", sigv4.ErrIncomplete},
		"no host":           {"host;", "", sigv4.ErrIncomplete},
		"headers unsorted":  {"content-type;host;x-amz-date", "x-amz-date;host", sigv4.ErrIncomplete},
	} {
		wire := strings.Replace(vectors["ListUsers"], test.old, test.replacement, 1)
		if err := verify(t, wire, secret); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestCheckTime(t *testing.T) {
	t.Parallel()
	signed := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	s := &sigv4.Signature{Time: signed}
	for age, want := range map[time.Duration]error{
		-6 * time.Minute: sigv4.ErrEarly, -5 * time.Minute: nil, 0: nil,
		15 * time.Minute: nil, 16 * time.Minute: sigv4.ErrExpired,
	} {
		if err := s.CheckTime(signed.Add(age), 15*time.Minute, 5*time.Minute); !errors.Is(err, want) {
			t.Errorf("age %s: %v, want %v", age, err, want)
		}
	}
}
