package review_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// newTokenReview returns one that acts as a ServiceAccount that may review.
func newTokenReview(t *testing.T) *review.TokenReview {
	t.Helper()
	v, err := review.NewTokenReview(cp.ConfigForToken(token(t, newReviewer(t))))
	if err != nil {
		t.Fatal(err)
	}
	warm := newAccount(t)
	eventually(t, "the reviewer's right", func() error {
		_, err := v.Verify(t.Context(), token(t, warm))
		return err
	})
	return v
}

func TestTokenReview(t *testing.T) {
	t.Parallel()
	v := newTokenReview(t)
	account := newAccount(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + account.Namespace}}
	create(t, node)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "worker"},
		Spec: corev1.PodSpec{
			ServiceAccountName: account.Name, NodeName: node.Name,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}},
		},
	}
	create(t, pod)
	bound := mint(t, account, authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	})

	got, err := v.Verify(t.Context(), bound)
	if err != nil {
		t.Fatal(err)
	}
	if want := identityOf(account).Account; got.Cluster != review.WorkloadCluster || got.Account != want {
		t.Errorf("got %+v, want the account %+v of the cluster %s", got, want, review.WorkloadCluster)
	}
	want := subject.Binding{
		Pod:  subject.Object{Name: pod.Name, UID: string(pod.UID)},
		Node: subject.Object{Name: node.Name, UID: string(node.UID)},
	}
	if got.Bound != want {
		t.Errorf("bound to %+v, want %+v", got.Bound, want)
	}
	now := clock.RealClock{}.Now()
	if got.Token.ID == "" || got.Token.Issuer != apiAudience || !got.Token.NotAfter.After(now) || got.Token.NotAfter.After(now.Add(2*time.Hour)) {
		t.Errorf("the token: %+v", got.Token)
	}

	got, err = v.Verify(t.Context(), cp.LegacyToken(t, account.Namespace, account.Name))
	if err != nil || !got.Token.Legacy || got.Account != identityOf(account).Account || !got.Token.NotAfter.IsZero() {
		t.Errorf("a Secret's token: %+v, %v", got, err)
	}
}

func TestTokenReviewRefuses(t *testing.T) {
	t.Parallel()
	v := newTokenReview(t)
	account := newAccount(t)
	for name, tt := range map[string]struct {
		token string
		want  denial.Reason
	}{
		"nothing":          {"", denial.MissingToken},
		"a huge token":     {strings.Repeat("a", subject.MaxTokenBytes+1), denial.Malformed},
		"junk":             {"not.a.token", denial.Revoked},
		"another audience": {token(t, account, audience), denial.Revoked},
	} {
		if _, err := v.Verify(t.Context(), tt.token); err == nil || denial.Of(err).Reason != tt.want {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
	gone := newAccount(t)
	secret := token(t, gone)
	if err := cp.Client(t).Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token of a deleted account", func() error {
		if _, err := v.Verify(t.Context(), secret); err == nil {
			return errors.New("it is taken")
		}
		return nil
	})

	stranger, err := review.NewTokenReview(cp.ConfigForToken(token(t, account)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Verify(t.Context(), token(t, account))
	wantReason(t, err, denial.ReviewUnavailable)

	nowhere, err := review.NewTokenReview(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = nowhere.Verify(t.Context(), token(t, account))
	wantReason(t, err, denial.ReviewUnavailable)
}
