package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const (
	// requestTimeout bounds one TokenRequest, including the client's own retries when
	// the hub asks for them.
	requestTimeout = 30 * time.Second
	// recreatedRecheck is the delay before retrying while the hub's condition still
	// names an earlier ServiceAccount.
	recreatedRecheck = 30 * time.Second
	// settleTime is how long after the hub's condition became True a denial means that
	// an API server has not seen the Role yet, and settleRecheck when to retry.
	settleTime    = 10 * time.Second
	settleRecheck = 500 * time.Millisecond
)

// Reasons of a *driver.RequestError that Obtain returns.
const (
	ReasonForbidden    = "TokenRequestForbidden"
	ReasonUnauthorized = "ClusterCredentialRejected"
	ReasonNotFound     = "ServiceAccountNotFound"
	ReasonInvalid      = "TokenRequestInvalid"
	ReasonTimeout      = "TokenRequestTimeout"
	ReasonUnavailable  = "TokenRequestFailed"
	ReasonUnfit        = "TokenUnfit"
)

// Obtain implements driver.Credential: one TokenRequest for the ServiceAccount that
// the hub says is ready, and nothing before it does. A TokenRequest leaves
// nothing behind on the hub, so nothing is pending and a crash costs one
// request. Failures are *driver.RequestError.
func (a *AddOn) Obtain(ctx context.Context, hub client.Client, _ driver.Data) (driver.Step, error) {
	if !a.infra.ready() {
		return driver.Step{Waiting: a.infra.waiting, Failing: a.infra.failing, Watch: a.config.AddOn}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	account := a.infra.account
	request := &authenticationv1.TokenRequest{
		// A hub that knows this condition refuses when the ServiceAccount is
		// another one by now. One that does not is found out by the claims.
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(account.UID)},
		Spec:       authenticationv1.TokenRequestSpec{ExpirationSeconds: new(a.config.ExpirationSeconds)},
	}
	err := hub.SubResource("token").Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name},
	}, request)
	if err != nil {
		return a.refused(err)
	}
	return a.issued(request.Status.Token)
}

// refused turns what the hub said into a wait or an error.
func (a *AddOn) refused(err error) (driver.Step, error) {
	account := a.infra.account.Namespace + "/" + a.infra.account.Name
	failed := func(reason, format string, args ...any) (driver.Step, error) {
		return driver.Step{}, &driver.RequestError{Reason: reason, Message: fmt.Sprintf(format, args...), Cause: err}
	}
	switch {
	case apierrors.IsConflict(err):
		return a.recreated(), nil
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		after := time.Duration(max(seconds, 1)) * time.Second
		return driver.Step{After: after, Failing: true, Waiting: driver.Waiting{Reason: ReasonThrottled, Message: fmt.Sprintf(
			"the hub is overloaded and asked not to request tokens for %v", after)}}, nil
	case apierrors.IsForbidden(err) && a.infra.settling(a.config.Clock.Now()):
		return driver.Step{After: settleRecheck, Waiting: driver.Waiting{Reason: ReasonPending, Message: fmt.Sprintf(
			"waiting for the hub's API servers to learn that tokens of ServiceAccount %s may be requested", account)}}, nil
	case apierrors.IsForbidden(err):
		return failed(ReasonForbidden, "the cluster's credential lacks the right to create serviceaccounts/token of %s, which the hub's add-on manager grants with Role and RoleBinding %s/%s; check that they are there",
			account, a.config.Cluster, names.AddOnTokenRole(a.config.AddOn.Name))
	case apierrors.IsUnauthorized(err):
		return failed(ReasonUnauthorized, "the hub does not take the cluster's own credential")
	case apierrors.IsNotFound(err):
		return failed(ReasonNotFound, "ServiceAccount %s is not on the hub although the hub's add-on manager reported it; check that the add-on manager runs, which recreates it", account)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return failed(ReasonInvalid, "the hub issues no token of %s for %d s; choose another --addon-token-expiration-seconds, 600 is the least", account, a.config.ExpirationSeconds)
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return failed(ReasonTimeout, "the hub did not issue a token of %s in time", account)
	}
	return failed(ReasonUnavailable, "the hub issued no token of %s", account)
}

// recreated waits for the hub's condition to name the present ServiceAccount.
func (a *AddOn) recreated() driver.Step {
	return driver.Step{
		Watch: a.config.AddOn,
		After: recreatedRecheck,
		Waiting: driver.Waiting{Reason: ReasonRecreated, Message: fmt.Sprintf(
			"ServiceAccount %s/%s was recreated on the hub; waiting for the hub's add-on manager to report it", a.infra.account.Namespace, a.infra.account.Name)},
	}
}

// issued turns a new token into a credential, or reports why it is not usable.
func (a *AddOn) issued(token string) (driver.Step, error) {
	unfit := func(why error) (driver.Step, error) {
		return driver.Step{}, &driver.RequestError{Reason: ReasonUnfit, Message: "the hub issued a token that cannot be used", Cause: why}
	}
	parsed, err := parse([]byte(token))
	if err != nil {
		return unfit(err)
	}
	validity, err := parsed.validFor(a.infra.account)
	if errors.Is(err, credential.ErrWrongIdentity) && parsed.Kubernetes.ServiceAccount.UID != a.infra.account.UID {
		return a.recreated(), nil
	}
	if err != nil {
		return unfit(err)
	}
	if err := validity.CheckIssued(a.config.Clock.Now()); err != nil {
		return unfit(err)
	}
	return driver.Step{Issued: &driver.Issued{
		Data: driver.Data{
			names.KeyToken:              []byte(token),
			names.KeyExpiration:         []byte(credential.Timestamp(validity.NotAfter)),
			names.KeyServiceAccountUID:  []byte(parsed.Kubernetes.ServiceAccount.UID),
			names.KeyServiceAccountName: []byte(parsed.Kubernetes.ServiceAccount.Name),
		},
		Validity: validity,
	}}, nil
}
