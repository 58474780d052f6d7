package addon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// traces are texts of which one occurs wherever the signature of a token does, in
// whatever it is a part of: as it is, decoded, or encoded as data of a Secret are.
func traces(t *testing.T, token string) []string {
	t.Helper()
	signature := token[strings.LastIndex(token, ".")+1:]
	decoded, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(decoded) < 8 {
		t.Fatalf("%d bytes of a signature, %v", len(decoded), err)
	}
	return append(logs.Traces(signature), string(decoded))
}

// TestNoTokenInLogs follows an agent through a first token, a refresh, and tokens
// that cannot be had, stored or used. Neither its log nor what it tells the hub
// has one of them.
func TestNoTokenInLogs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	log := &logs.Log{}
	// The most that shows no bodies of requests, in the format of the real agent.
	f.logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(7), textlogger.Output(log)))
	f.start(t)
	secret := f.withToken(t)
	tokens := []string{string(secret.Data[names.KeyToken])}

	f.annotate(t, names.AnnotationRotate, now().Add(-time.Minute).UTC().Format(time.RFC3339))
	secret = f.awaitSecret(t, secret.Name, func(data map[string][]byte) bool { return string(data[names.KeyToken]) != tokens[0] })
	tokens = append(tokens, string(secret.Data[names.KeyToken]))

	uid := string(secret.Data[names.KeyServiceAccountUID])
	account := names.AddOnServiceAccount(f.cluster, "one")
	expired := string(forge(t, f.cluster, account, uid, now().Add(-2*time.Hour), now().Add(-time.Hour)))
	others := string(forge(t, "elsewhere", account, uid, now(), now().Add(time.Hour)))
	told := ""
	for _, unfit := range []string{expired, others, strings.Replace(expired, ".", ".%", 1)} {
		unfit += base64.RawURLEncoding.EncodeToString([]byte(" of nobody else"))
		tokens = append(tokens, unfit)
		f.issue(t, unfit)
		damaged := f.secret(t, secret.Name)
		damaged.Data[names.KeyToken] = []byte(unfit)
		if err := f.admin.Update(t.Context(), damaged); err != nil {
			t.Fatal(err)
		}
		told += f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, names.ReasonTokenCreationFailed).Message
		f.setRefuse(nil)
		f.annotate(t, names.AnnotationRotate, now().UTC().Format(time.RFC3339Nano))
		f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
		tokens = append(tokens, string(f.secret(t, secret.Name).Data[names.KeyToken]))
	}

	for _, shows := range []string{"/serviceaccounts/" + account + "/token", "/secrets/" + secret.Name} {
		if log.With(shows) == "" {
			t.Errorf("nothing is logged about %s, so that nothing is shown", shows)
		}
	}
	for _, issued := range tokens {
		for _, trace := range traces(t, issued) {
			if line := log.With(trace); line != "" {
				t.Errorf("a token is in the log: %s", line)
			}
			if strings.Contains(told, trace) {
				t.Errorf("a token is in a condition: %s", told)
			}
		}
	}
}

// issue answers TokenRequests with a token in the hub's place.
func (f *fleet) issue(t *testing.T, token string) {
	t.Helper()
	body, err := json.Marshal(&authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Status:   authenticationv1.TokenRequestStatus{Token: token},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.setRefuse(func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/token") {
			return nil
		}
		return &http.Response{
			StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body)), Request: r,
		}
	})
}
