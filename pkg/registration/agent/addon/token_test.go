package addon_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

func TestToken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	f.register(t, "one")
	subject := f.subject(t, "one", driver.Token)
	if want := names.ServiceAccountUser(f.cluster, names.AddOnServiceAccount(f.cluster, "one")); subject.User != want || len(subject.Groups) != 0 {
		t.Errorf("declared %+v, want user %s", subject, want)
	}
	waiting := f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionFalse, token.ReasonPending)
	if waiting.Message == "" {
		t.Error("it does not say what it waits for")
	}
	f.serve(t, "one", names.AddOnServiceAccount(f.cluster, "one"))
	refreshed := f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	own := f.condition(t, "one", names.ConditionAddOnTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	if refreshed.Message != own.Message {
		t.Errorf("%q and %q differ", refreshed.Message, own.Message)
	}
	secret := f.secret(t, "one-hub-kubeconfig")
	keys := slices.Sorted(maps.Keys(secret.Data))
	if want := []string{"cluster-name", "expiration", "kubeconfig", "serviceaccount_name", "serviceaccount_uid", "token"}; !slices.Equal(keys, want) {
		t.Errorf("the Secret has %v, want %v", keys, want)
	}
	if refreshed.Message != "Addon token refreshed, expires at "+string(secret.Data["expiration"]) {
		t.Errorf("message %q", refreshed.Message)
	}
	// Since when the token is there, people read from the condition's time.
	expires, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	if life := expires.Sub(refreshed.LastTransitionTime.Time); err != nil || life != time.Hour || !own.LastTransitionTime.Equal(&refreshed.LastTransitionTime) {
		t.Errorf("the condition is of %v, %v before the end (%v)", refreshed.LastTransitionTime, life, err)
	}
	hub, err := kubeconfig.ParseHub(secret.Data["kubeconfig"])
	if err != nil || hub.User.TokenFile != "token" || !hub.SameServer(f.config.Hub) {
		t.Errorf("kubeconfig %+v, %v", hub, err)
	}
	var who authenticationv1.SelfSubjectReview
	if err := plane.ClientFor(t, plane.ConfigForToken(string(secret.Data["token"]))).Create(t.Context(), &who); err != nil || who.Status.UserInfo.Username != subject.User {
		t.Errorf("the hub takes the token for %s, %v", who.Status.UserInfo.Username, err)
	}
	if addOn, err := f.get(t, "one"); err != nil || apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionCertificateRotated) != nil {
		t.Errorf("conditions %+v, %v", addOn.Status.Conditions, err)
	}
	t.Log(f.writes())
}
