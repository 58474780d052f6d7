package exchangetest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/exchangetest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
)

// TestAsk asks a running token authorizer.
func TestAsk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  int
		issued  string
		outcome explanation.Outcome
	}{
		"allowed":          {http.StatusOK, "Bearer issued", explanation.Passed},
		"denied":           {http.StatusForbidden, "", explanation.Failed},
		"no token is sent": {http.StatusOK, "", explanation.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authorizer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer subject" {
					t.Errorf("asked with %v", r.Header)
				}
				w.Header().Set("X-Ocm-Reason", "NotAllowed")
				if tc.issued != "" {
					w.Header().Set("Authorization", tc.issued)
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte("body\n"))
			}))
			defer authorizer.Close()
			test := exchangetest.New(types.NamespacedName{Namespace: "app", Name: "web"}, nil, nil, nil)
			issued, err := test.Ask(t.Context(), authorizer.URL+"/", authorizer.Client(), "subject")
			if len(test.Trace.Steps) != 1 || test.Trace.Steps[0].Outcome != tc.outcome {
				t.Errorf("the steps are %+v", test.Trace.Steps)
			}
			if tc.outcome == explanation.Passed {
				if err != nil || issued != "issued" || !test.Trace.Allowed {
					t.Errorf("got %q, %v", issued, err)
				}
				return
			}
			answer, ok := errors.AsType[*exchangetest.AnswerError](err)
			if !ok || answer.Detail != "body" || test.Trace.Status != tc.status || test.Trace.Reason != "NotAllowed" {
				t.Errorf("got %v and %+v", err, test.Trace)
			}
		})
	}
}

// TestAskBadAddress names the address as the problem.
func TestAskBadAddress(t *testing.T) {
	t.Parallel()
	test := exchangetest.New(types.NamespacedName{}, nil, nil, nil)
	_, err := test.Ask(t.Context(), "https://[", nil, "subject")
	if _, ok := errors.AsType[*exchangetest.AddressError](err); !ok {
		t.Errorf("got %v", err)
	}
}
