package server_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// issued is a token of the hub with these audiences.
func issued(audiences ...string) string {
	claims, err := json.Marshal(map[string]any{"aud": audiences})
	if err != nil {
		panic(err)
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

// TestExchange answers as RFC 8693 §2.2.1 says.
func TestExchange(t *testing.T) {
	t.Parallel()
	now := clock.RealClock{}.Now()
	decision := allowed()
	decision.Token.Value = issued("https://hub", "https://other")
	decision.Token.Expires = now.Add(time.Hour)
	decision.Identity.Token.NotAfter = now.Add(10 * time.Minute)
	ask := &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return decision, nil }}
	s := start(t, server.Config{Authorizer: ask, Exchange: true})
	for name, tc := range map[string]struct {
		set  url.Values
		want string
	}{
		"the least":              {nil, "urn:ietf:params:oauth:token-type:access_token"},
		"a JWT":                  {url.Values{"requested_token_type": {"urn:ietf:params:oauth:token-type:jwt"}}, "urn:ietf:params:oauth:token-type:jwt"},
		"an id token as subject": {url.Values{"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"}}, "urn:ietf:params:oauth:token-type:access_token"},
		"with audiences":         {url.Values{"audience": {"https://other", "https://hub"}}, "urn:ietf:params:oauth:token-type:access_token"},
		"with a resource":        {url.Values{"resource": {"https://hub"}}, "urn:ietf:params:oauth:token-type:access_token"},
		"unknown parameters":     {url.Values{"client_id": {"x"}}, "urn:ietf:params:oauth:token-type:access_token"},
	} {
		values := form()
		maps.Copy(values, tc.set)
		response := post(t, s, values)
		var got struct {
			AccessToken     string `json:"access_token"`
			IssuedTokenType string `json:"issued_token_type"`
			TokenType       string `json:"token_type"`
			ExpiresIn       int    `json:"expires_in"`
		}
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK || got.AccessToken != decision.Token.Value || got.TokenType != "Bearer" || got.IssuedTokenType != tc.want {
			t.Errorf("%s: got %d %+v", name, response.StatusCode, got)
		}
		// The subject token ends before the issued one.
		if got.ExpiresIn > 600 || got.ExpiresIn < 500 {
			t.Errorf("%s: got %d s", name, got.ExpiresIn)
		}
		if response.Header.Get("Cache-Control") != "no-store" || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %v", name, response.Header)
		}
	}
	if got := ask.last(); got.Token != "a.b.c" || got.Origin.Path != "/token" {
		t.Errorf("asked %+v", got)
	}
}

// TestExchangeRefusesForms names the parameter that is wrong, and asks nobody.
func TestExchangeRefusesForms(t *testing.T) {
	t.Parallel()
	ask := allowing()
	s := start(t, server.Config{Authorizer: ask, Exchange: true})
	for name, tc := range map[string]struct {
		key, value, want string
	}{
		"no grant type":          {"grant_type", "", "invalid_request"},
		"another grant type":     {"grant_type", "client_credentials", "unsupported_grant_type"},
		"no subject":             {"subject_token", "", "invalid_request"},
		"no type of the subject": {"subject_token_type", "", "invalid_request"},
		"another type":           {"subject_token_type", "urn:ietf:params:oauth:token-type:saml2", "invalid_request"},
		"an actor":               {"actor_token", "x", "invalid_request"},
		"an actor's type":        {"actor_token_type", "x", "invalid_request"},
		"a scope":                {"scope", "admin", "invalid_scope"},
		"a refresh token":        {"requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token", "invalid_request"},
		"a relative resource":    {"resource", "/x", "invalid_target"},
		"a resource's fragment":  {"resource", "https://hub#x", "invalid_target"},
	} {
		values := form()
		values.Set(tc.key, tc.value)
		expectError(t, name, post(t, s, values), http.StatusBadRequest, tc.want)
	}
	twice := form()
	twice.Add("subject_token", "d.e.f")
	expectError(t, "two subjects", post(t, s, twice), http.StatusBadRequest, "invalid_request")

	address := "http://" + s.Addresses().HTTP + "/token"
	for name, tc := range map[string]struct {
		method, contentType, body string
		status                    int
	}{
		"a GET":                 {http.MethodGet, "", "", http.StatusMethodNotAllowed},
		"JSON":                  {http.MethodPost, "application/json", "{}", http.StatusBadRequest},
		"too much":              {http.MethodPost, "application/x-www-form-urlencoded", strings.Repeat("a", 70<<10), http.StatusBadRequest},
		"not well-formed":       {http.MethodPost, "application/x-www-form-urlencoded", "a=%zz", http.StatusBadRequest},
		"parameters in the URL": {http.MethodPost, "application/x-www-form-urlencoded", "", http.StatusBadRequest},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, address+"?"+form().Encode(), strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", tc.contentType)
		expectError(t, name, do(t, request), tc.status, "invalid_request")
	}
	if got := ask.last(); got.Token != "" {
		t.Errorf("asked %+v", got)
	}
}

// TestExchangeRefusesDecisions that are not worth what was asked for.
func TestExchangeRefusesDecisions(t *testing.T) {
	t.Parallel()
	decision := allowed()
	decision.Token.Value = issued("https://hub")
	decision.Identity.Token.NotAfter = clock.RealClock{}.Now().Add(30 * time.Second)
	ending := &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return decision, nil }}
	expectError(t, "an ending subject", post(t, start(t, server.Config{Authorizer: ending, Exchange: true}), form()),
		http.StatusBadRequest, "invalid_request")

	other := decision
	other.Identity.Token.NotAfter = time.Time{}
	asked := &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return other, nil }}
	values := form()
	values.Set("audience", "https://elsewhere")
	expectError(t, "another audience", post(t, start(t, server.Config{Authorizer: asked, Exchange: true}), values),
		http.StatusBadRequest, "invalid_target")
}

func expectError(t *testing.T, name string, response reply, status int, code string) {
	t.Helper()
	var got struct {
		Error string `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if response.StatusCode != status || got.Error != code {
		t.Errorf("%s: got %d %q, want %d %q", name, response.StatusCode, got.Error, status, code)
	}
	if got := response.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: got Cache-Control %q", name, got)
	}
}

// FuzzExchangeForm: whatever is sent is answered, and nothing but a whole form
// reaches the authorizer.
func FuzzExchangeForm(f *testing.F) {
	f.Add(form().Encode())
	f.Add("grant_type=x&subject_token=%zz")
	f.Add("subject_token=a&subject_token=b")
	f.Fuzz(func(t *testing.T, body string) {
		if server.AcceptsForm(body) {
			values, err := url.ParseQuery(body)
			if err != nil || values.Get("subject_token") == "" || len(values["subject_token"]) != 1 || values.Has("actor_token") {
				t.Errorf("took %q", body)
			}
		}
	})
}

// FuzzAuthorization: a token that is found is one word, and is in the header.
func FuzzAuthorization(f *testing.F) {
	f.Add("Bearer a.b.c", "")
	f.Add("bearer a,b", "Bearer c")
	f.Fuzz(func(t *testing.T, first, second string) {
		values := []string{first}
		if second != "" {
			values = append(values, second)
		}
		token := server.TokenOf(values...)
		if token == "" || token == server.Unusable {
			return
		}
		if len(values) > 1 || strings.Contains(token, ",") || !strings.Contains(first, token) || !strings.EqualFold(first[:0]+strings.Fields(first)[0], "bearer") {
			t.Errorf("%q: got %q", values, token)
		}
	})
}
