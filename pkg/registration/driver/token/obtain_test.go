package token_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// recorder is a hub that answers TokenRequests with a token or an error. Any
// other call panics.
type recorder struct {
	client.Client
	requested []string
	request   authenticationv1.TokenRequest
	token     string
	err       error
}

func (r *recorder) SubResource(name string) client.SubResourceClient {
	return &subresource{recorder: r, name: name}
}

type subresource struct {
	client.SubResourceClient
	recorder *recorder
	name     string
}

func (s *subresource) Create(_ context.Context, o, sub client.Object, _ ...client.SubResourceCreateOption) error {
	request, ok := sub.(*authenticationv1.TokenRequest)
	if !ok || s.name != "token" {
		return fmt.Errorf("%s of %T", s.name, sub)
	}
	s.recorder.requested = append(s.recorder.requested, o.GetNamespace()+"/"+o.GetName())
	s.recorder.request = *request
	request.Status.Token = s.recorder.token
	return s.recorder.err
}

func TestObtainWaitsForTheHub(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		status  metav1.ConditionStatus
		message string
		reason  string
		says    string
		failing bool
	}{
		{name: "silent", reason: token.ReasonPending, says: "add-on manager"},
		{name: "failing", status: "False", message: "Failed to apply: quota", reason: token.ReasonFailed, says: "quota", failing: true},
		{name: "unknown", status: "Unknown", message: "hm", reason: token.ReasonFailed, says: "hm"},
		{name: "unreadable", status: "True", message: "all is well", reason: token.ReasonUnreadable, says: "all is well", failing: true},
		{name: "another ServiceAccount", status: "True", message: "ServiceAccount c1/admin (UID: 1) is ready", reason: token.ReasonRefused, says: "c1/admin", failing: true},
		{name: "another namespace", status: "True", message: "ServiceAccount kube-system/a-agent (UID: 1) is ready", reason: token.ReasonRefused, says: "kube-system/a-agent", failing: true},
		{name: "a long story", status: "False", message: strings.Repeat("x", 1<<15), reason: token.ReasonFailed, says: "...", failing: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			hub := &recorder{}
			step, err := newAddOn(kubeClient("token", ownUser), said(tc.status, tc.message)...).Obtain(t.Context(), hub, nil)
			if err != nil || len(hub.requested) > 0 || step.Issued != nil {
				t.Fatalf("it did not wait: %+v, %v, requested %v", step, err, hub.requested)
			}
			if step.Waiting.Reason != tc.reason || step.Failing != tc.failing || step.Watch == nil {
				t.Errorf("it waits as %+v", step)
			}
			if !strings.Contains(step.Waiting.Message, tc.says) || len(step.Waiting.Message) > 1024 {
				t.Errorf("it says %q, want a word of %q", step.Waiting.Message, tc.says)
			}
		})
	}
}

func TestObtainRequestsOneToken(t *testing.T) {
	t.Parallel()
	hub := &recorder{token: string(encode(t, claimsOf(nil)))}
	addOn := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...)
	step, err := addOn.Obtain(t.Context(), hub, nil)
	if err != nil || step.Issued == nil {
		t.Fatalf("got %+v, %v", step, err)
	}
	if len(hub.requested) != 1 || hub.requested[0] != "c1/c1-a-agent" {
		t.Errorf("requested %v", hub.requested)
	}
	if got := hub.request.Spec; len(got.Audiences) > 0 || got.BoundObjectRef != nil || *got.ExpirationSeconds != 31536000 || hub.request.UID != "u1" {
		t.Errorf("the request is %+v", hub.request)
	}
	data := step.Issued.Data
	for key, want := range map[string]string{
		names.KeyToken: hub.token, names.KeyExpiration: "2030-01-01T01:00:00Z",
		names.KeyServiceAccountUID: "u1", names.KeyServiceAccountName: "c1-a-agent",
	} {
		if string(data[key]) != want {
			t.Errorf("%s is %q, want %q", key, data[key], want)
		}
	}
	if user := addOn.User(); user.TokenFile != names.KeyToken || user.Token != "" {
		t.Errorf("the kubeconfig's user has %q", user.TokenFile)
	}
	// The hub gave an hour although a year was asked for: the hour counts.
	if validity, err := addOn.Inspect(data); err != nil || validity != step.Issued.Validity || validity.Lifetime() != time.Hour {
		t.Errorf("inspected %+v, %v, issued %+v", validity, err, step.Issued.Validity)
	}
}

func TestObtainReportsFailures(t *testing.T) {
	t.Parallel()
	account := schema.GroupResource{Resource: "serviceaccounts"}
	throttled := apierrors.NewTooManyRequests("slow down", 7)
	for _, tc := range []struct {
		name   string
		err    error
		token  []byte
		reason string
		says   string
	}{
		{name: "forbidden", err: apierrors.NewForbidden(account, "c1-a-agent", errors.New("no")), reason: token.ReasonForbidden, says: "a-token-role"},
		{name: "not the cluster any more", err: apierrors.NewUnauthorized("who"), reason: token.ReasonUnauthorized},
		{name: "gone", err: apierrors.NewNotFound(account, "c1-a-agent"), reason: token.ReasonNotFound, says: "recreates it"},
		{name: "too short a life", err: apierrors.NewBadRequest("at least 600"), reason: token.ReasonInvalid, says: "31536000"},
		{name: "slow", err: context.DeadlineExceeded, reason: token.ReasonTimeout},
		{name: "slow within", err: apierrors.NewTimeoutError("slow", 1), reason: token.ReasonTimeout},
		{name: "down", err: errors.New("connection refused"), reason: token.ReasonUnavailable, says: "connection refused"},
		{name: "broken", err: apierrors.NewGenericServerResponse(http.StatusInternalServerError, "create", account, "x", "etcd", 0, false), reason: token.ReasonUnavailable},
		{name: "nothing", reason: token.ReasonUnfit},
		{name: "no JWT", token: []byte("opaque"), reason: token.ReasonUnfit},
		{name: "no end", token: encode(t, claimsOf(func(c, _ map[string]any) { delete(c, "exp") })), reason: token.ReasonUnfit},
		{name: "another's", token: encode(t, claimsOf(func(_, a map[string]any) { a["name"] = "admin" })), reason: token.ReasonUnfit},
		{name: "over already", token: encode(t, claimsOf(func(c, _ map[string]any) { c["iat"], c["exp"] = 1, 2 })), reason: token.ReasonUnfit, says: "check the clocks"},
		{name: "to come", token: encode(t, claimsOf(func(c, _ map[string]any) {
			c["iat"], c["exp"] = epoch().Add(time.Hour).Unix(), epoch().Add(2*time.Hour).Unix()
		})), reason: token.ReasonUnfit, says: "check the clocks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			hub := &recorder{err: tc.err, token: string(tc.token)}
			step, err := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...).Obtain(t.Context(), hub, nil)
			var failure *driver.RequestError
			if !errors.As(err, &failure) || failure.Reason != tc.reason || step.Issued != nil {
				t.Fatalf("got %v, %+v, want reason %s", err, step, tc.reason)
			}
			if !strings.Contains(err.Error(), tc.says) || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("it says %q, want a word of %q and its cause", err, tc.says)
			}
		})
	}
	step, err := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...).
		Obtain(t.Context(), &recorder{err: throttled}, nil)
	if err != nil || step.After != 7*time.Second || !step.Failing || step.Waiting.Reason != token.ReasonThrottled {
		t.Errorf("throttled: %+v, %v", step, err)
	}
}

// A ServiceAccount that was made anew is awaited in the hub's condition,
// whether the hub refuses the request or issues a token of the new one.
func TestObtainWaitsForTheNewServiceAccount(t *testing.T) {
	t.Parallel()
	for name, hub := range map[string]*recorder{
		"refused": {err: apierrors.NewConflict(schema.GroupResource{}, "c1-a-agent", errors.New("UID"))},
		"issued":  {token: string(encode(t, claimsOf(func(_, a map[string]any) { a["uid"] = "u2" })))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, err := newAddOn(kubeClient("token", ownUser), said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")...).Obtain(t.Context(), hub, nil)
			if err != nil || step.Issued != nil || step.Waiting.Reason != token.ReasonRecreated || step.Watch == nil || step.After <= 0 {
				t.Errorf("got %+v, %v", step, err)
			}
		})
	}
}

// Right after the hub has made the Role, a refusal is no failure.
func TestObtainLetsTheHubSettle(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "c1-a-agent", errors.New("no"))
	for age, settling := range map[time.Duration]bool{0: true, 9 * time.Second: true, -9 * time.Second: true, 11 * time.Second: false, -time.Hour: false} {
		conditions := said("True", "ServiceAccount c1/c1-a-agent (UID: u1) is ready")
		conditions[0].LastTransitionTime = metav1.NewTime(epoch().Add(-age))
		step, err := newAddOn(kubeClient("token", ownUser), conditions...).Obtain(t.Context(), &recorder{err: forbidden}, nil)
		if settling != (err == nil) {
			t.Errorf("ready for %v: got %v", age, err)
		}
		if settling && (step.Failing || step.After <= 0 || step.Waiting.Reason != token.ReasonPending) {
			t.Errorf("ready for %v: got %+v", age, step)
		}
	}
}
