package kubelet_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeletv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/kubelet"
)

// now is the time in these tests.
var now = time.Unix(1_800_000_000, 0)

// token is a token that expires after a time. It is not signed.
func token(life time.Duration) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, now.Add(life).Unix())) + ".c2ln"
}

// request is a request of the kubelet.
func request(image, token string) string {
	return fmt.Sprintf(`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderRequest","image":%q,"serviceAccountToken":%q}`, image, token)
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		image string
		life  time.Duration
		host  string
		cache time.Duration
	}{
		"an image":                     {"registry.example.com/team/app", time.Hour, "registry.example.com", 59 * time.Minute},
		"a port":                       {"registry.example.com:5000/app", time.Hour, "registry.example.com:5000", 59 * time.Minute},
		"a token that soon expires":    {"registry.example.com/app", 30 * time.Second, "registry.example.com", 0},
		"a token that seems to be old": {"registry.example.com/app", -time.Hour, "registry.example.com", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			secret := token(tc.life)
			if err := kubelet.Answer(strings.NewReader(request(tc.image, secret)), &out, "user", now); err != nil {
				t.Fatal(err)
			}
			var answer kubeletv1.CredentialProviderResponse
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if answer.APIVersion != "credentialprovider.kubelet.k8s.io/v1" || answer.Kind != "CredentialProviderResponse" ||
				answer.CacheKeyType != kubeletv1.RegistryPluginCacheKeyType || answer.CacheDuration.Duration != tc.cache {
				t.Errorf("%+v", answer)
			}
			if len(answer.Auth) != 1 || answer.Auth[tc.host] != (kubeletv1.AuthConfig{Username: "user", Password: secret}) {
				t.Errorf("%v", answer.Auth)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	secret := token(time.Hour)
	good := request("registry.example.com/app", secret)
	for name, tc := range map[string]struct{ request, says string }{
		"nothing":       {"", "is not JSON"},
		"another form":  {"[" + good + "]", "is not JSON"},
		"a version":     {strings.Replace(good, "/v1", "/v1beta1", 1), "apiVersion: credentialprovider.kubelet.k8s.io/v1"},
		"a kind":        {strings.Replace(good, "Request", "Response", 1), "is not a CredentialProviderRequest"},
		"no image":      {request("", secret), "has no image"},
		"no token":      {request("registry.example.com/app", ""), "set tokenAttributes"},
		"another token": {request("registry.example.com/app", "secret-thing"), "is malformed"},
		"no expiry":     {request("registry.example.com/app", "eyJhbGciOiJSUzI1NiJ9.e30.secret-thing"), "is malformed"},
		"too long":      {good + strings.Repeat(" ", 1<<20), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := kubelet.Answer(strings.NewReader(tc.request), &out, "user", now)
			if err == nil || !strings.Contains(err.Error(), tc.says) || out.Len() != 0 {
				t.Fatalf("%v, %q", err, out.String())
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "secret-thing") {
				t.Errorf("%v shows the token", err)
			}
		})
	}
}

// FuzzAnswer: whatever comes in, an error quotes no token, and an answer is one
// that the kubelet can read and never caches for longer than the token lives.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(request("registry.example.com/app", token(time.Hour))))
	f.Add([]byte(request("registry.example.com:5000/app", "a.b.c")))
	f.Add([]byte(`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		var sent kubeletv1.CredentialProviderRequest
		readable := json.Unmarshal(data, &sent) == nil
		err := kubelet.Answer(bytes.NewReader(data), &out, "user", now)
		if err != nil {
			if readable && len(sent.ServiceAccountToken) > 20 && strings.Contains(err.Error(), sent.ServiceAccountToken) {
				t.Errorf("%v shows the token", err)
			}
			return
		}
		var answer kubeletv1.CredentialProviderResponse
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Auth) != 1 || answer.CacheDuration == nil || answer.CacheDuration.Duration < 0 {
			t.Errorf("%+v", answer)
		}
	})
}
