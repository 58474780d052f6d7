package content_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
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
	for _, format := range []content.Format{content.DockerConfigJSON, content.DockerCfg, content.Both} {
		other := strings.Replace(claims, "registry", "other", 1)
		data, err := content.Encode(format,
			content.Credential{Hosts: []string{"a", "b:5000"}, Username: "user", Token: jwt(claims)},
			content.Credential{Hosts: []string{"aa"}, Username: "user", Token: jwt(strings.Replace(other, "4600", "4000", 1))})
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{Data: data}
		first := content.Token{
			Hosts: []string{"a", "b:5000"}, Username: "user", KeyID: "k1", Audiences: []string{"registry"},
			AccountUID: "a1", SecretUID: "s1", Issued: 1000, Expires: 4600,
		}
		second := first
		second.Hosts, second.Audiences, second.Expires = []string{"aa"}, []string{"other"}, 4000
		want := content.Summary{Format: format, Tokens: []content.Token{first, second}}
		for range 3 { // A transformation may be applied again.
			if diff := cmp.Diff(want, content.Of(secret)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", format, diff)
			}
			if err := content.Summarize(secret); err != nil {
				t.Fatal(err)
			}
		}
		s := content.Of(secret)
		if !s.Usable(time.Unix(3999, 0)) || s.Usable(time.Unix(4000, 0)) {
			t.Error("it is not usable until the first token expires")
		}
		if hosts := s.Hosts(); !slices.Equal(hosts, []string{"a", "aa", "b:5000"}) {
			t.Errorf("hosts %q", hosts)
		}
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
		"a token without end": `{"auths":{"a":` + entry("user:"+jwt(claims)) + `,"b":` + entry("user:"+jwt(`{}`)) + `}}`,
		"a forged summary":    `{"summary":"e30="}`,
		"claims of no object": `{"auths":{"a":` + entry("user:"+jwt(`[]`)) + `}}`,
	} {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(data), "summary": []byte(`{"expires":99999999999}`)}}
		if s := content.Of(secret); s.Usable(time.Unix(1000, 0)) {
			t.Errorf("%s is usable: %+v", name, s)
		}
	}
	for _, format := range []content.Format{content.DockerConfigJSON, content.DockerCfg, content.Both} {
		empty, err := content.Empty(format)
		if err != nil {
			t.Fatal(err)
		}
		if s := content.Of(&corev1.Secret{Data: empty}); !s.Missing() || s.Format != format || s.Usable(time.Unix(0, 0)) {
			t.Errorf("without a token: %+v", s)
		}
	}
}

// TestFormatsThatDiffer: where a Secret has both formats, they say the same.
func TestFormatsThatDiffer(t *testing.T) {
	t.Parallel()
	data, err := content.Encode(content.Both, content.Credential{Hosts: []string{"a"}, Username: "user", Token: jwt(claims)})
	if err != nil {
		t.Fatal(err)
	}
	data[corev1.DockerConfigKey] = []byte(`{}`)
	if s := content.Of(&corev1.Secret{Data: data}); s.Problem == "" {
		t.Errorf("%+v", s)
	}
}

// TestFormatOfATypeThatCannotChange: a Secret keeps the format of its type.
func TestFormatOfATypeThatCannotChange(t *testing.T) {
	t.Parallel()
	for _, f := range []content.Format{content.DockerConfigJSON, content.DockerCfg, content.Both} {
		if got := f.In(f.Type()); got != f {
			t.Errorf("%s becomes %s", f, got)
		}
		for _, secret := range []corev1.SecretType{corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson} {
			if got := f.In(secret).Type(); got != secret {
				t.Errorf("%s in %s becomes %s", f, secret, got)
			}
		}
	}
}

// TestExpiryThatWasPutOff: a token whose expiry the API server put off for clients
// that never renew expires when it was asked to.
func TestExpiryThatWasPutOff(t *testing.T) {
	t.Parallel()
	data, err := content.Encode(content.DockerConfigJSON, content.Credential{
		Hosts: []string{"a"}, Token: jwt(`{"iat":1000,"exp":31536000,"kubernetes.io":{"warnafter":4600}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := content.Of(&corev1.Secret{Data: data}).Validity(); v.Lifetime() != time.Hour {
		t.Errorf("it lives for %v", v.Lifetime())
	}
}

func FuzzOf(f *testing.F) {
	good, err := content.Encode(content.Both, content.Credential{Hosts: []string{"a", "b"}, Username: "user", Token: jwt(claims)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[corev1.DockerConfigJsonKey], good[corev1.DockerConfigKey])
	f.Add([]byte(`{"auths":{"":{}}}`), []byte(`{"a":{},"b":{"auth":"?"}}`))
	f.Add([]byte(`{"auths":{"a":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`), []byte(nil)) // user:password
	f.Add([]byte(`{"auths":{"a":{"auth":"dG9rZW4="}}}`), []byte(nil))             // token
	f.Add([]byte(`password`), []byte(`{"a":{"auth":3}}`))
	f.Fuzz(func(t *testing.T, data, cfg []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: data, corev1.DockerConfigKey: cfg}}
		for key, value := range secret.Data {
			if len(value) == 0 {
				delete(secret.Data, key)
			}
		}
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
		if !slices.Contains(problems, before.Problem) {
			t.Errorf("%q may quote the data", before.Problem)
		}
	})
}

// problems are all that is said of data, whatever is in it.
var problems = []string{
	"", "the data is not JSON", "the credentials in its two formats differ", "the credential is not base64",
	"the credential is not a user and a password", "the password is not a token of a ServiceAccount",
}
