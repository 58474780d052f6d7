package content_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

const claims = `{"aud":["registry"],"iat":1000,"exp":4600,"kubernetes.io":{"serviceaccount":{"uid":"a1"},"secret":{"uid":"s1"}}}`

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256","kid":"k1"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	data, err := content.Encode([]string{"a", "b:5000"}, "user", jwt(claims))
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{Data: data}
	want := content.Summary{
		Hosts: []string{"a", "b:5000"}, Username: "user", KeyID: "k1", Audiences: []string{"registry"},
		AccountUID: "a1", SecretUID: "s1", Issued: 1000, Expires: 4600,
	}
	for range 3 { // A transformation may be applied again.
		if diff := cmp.Diff(want, content.Of(secret)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if err := content.Summarize(secret); err != nil {
			t.Fatal(err)
		}
	}
	if s := content.Of(secret); !s.Usable(time.Unix(4599, 0)) || s.Usable(time.Unix(4600, 0)) {
		t.Error("it is not usable until it expires")
	}
}

func TestWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	entry := func(credential string) string {
		return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(credential)) + `"}`
	}
	for name, data := range map[string]string{
		"not JSON":            `{`,
		"not base64":          `{"auths":{"a":{"auth":"?"}}}`,
		"no password":         `{"auths":{"a":` + entry("user") + `}}`,
		"no token":            `{"auths":{"a":` + entry("user:password") + `}}`,
		"two tokens":          `{"auths":{"a":` + entry("user:"+jwt(claims)) + `,"b":` + entry("user:"+jwt(`{}`)) + `}}`,
		"a forged summary":    `{"summary":"e30="}`,
		"claims of no object": `{"auths":{"a":` + entry("user:"+jwt(`[]`)) + `}}`,
	} {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(data), "summary": []byte(`{"expires":99999999999}`)}}
		if s := content.Of(secret); s.Usable(time.Unix(1000, 0)) {
			t.Errorf("%s is usable: %+v", name, s)
		}
	}
	if s := content.Of(&corev1.Secret{Data: content.Empty()}); !s.Missing || s.Problem != "" {
		t.Errorf("without a token: %+v", s)
	}
}

// TestExpiryThatWasPutOff: a token whose expiry the API server put off for clients
// that never renew expires when it was asked to.
func TestExpiryThatWasPutOff(t *testing.T) {
	t.Parallel()
	data, err := content.Encode([]string{"a"}, "user", jwt(`{"iat":1000,"exp":31536000,"kubernetes.io":{"warnafter":4600}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := content.Of(&corev1.Secret{Data: data}).Validity(); v.Lifetime() != time.Hour {
		t.Errorf("it lives for %v", v.Lifetime())
	}
}

func FuzzOf(f *testing.F) {
	good, err := content.Encode([]string{"a", "b"}, "user", jwt(claims))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[corev1.DockerConfigJsonKey])
	f.Add([]byte(`{"auths":{"":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: data}}
		before := content.Of(secret)
		if err := content.Summarize(secret); err != nil {
			t.Fatal(err)
		}
		after := content.Of(secret)
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if !slices.Equal(a, b) {
			t.Errorf("%s, then %s", a, b)
		}
	})
}
