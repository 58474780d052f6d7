package token

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Reasons that AddOn.Obtain waits for.
const (
	// ReasonPending waits for the hub's add-on manager to make the ServiceAccount.
	ReasonPending = "TokenInfrastructurePending"
	// ReasonFailed waits for the hub's add-on manager, which failed to create the ServiceAccount.
	ReasonFailed = "TokenInfrastructureFailed"
	// ReasonUnreadable waits for the hub to name the ServiceAccount readably.
	ReasonUnreadable = "TokenInfrastructureUnreadable"
	// ReasonRefused waits for the hub to name a ServiceAccount that the add-on may be.
	ReasonRefused = "ServiceAccountRefused"
	// ReasonRecreated waits for the hub to name the ServiceAccount that took
	// the place of the one it named.
	ReasonRecreated = "ServiceAccountRecreated"
	// ReasonThrottled waits as long as the hub asked for.
	ReasonThrottled = "TokenRequestThrottled"
)

// infrastructure is the content of the hub's condition.
type infrastructure struct {
	// account is the ServiceAccount that is ready; valid if waiting is empty.
	account names.TokenServiceAccount
	// changed is when it became ready, by the hub's clock.
	changed time.Time
	// waiting says why none is.
	waiting driver.Waiting
	// failing says that waiting is about a failure.
	failing bool
}

func (i infrastructure) ready() bool { return i.waiting.Reason == "" }

// uid returns the UID of the ServiceAccount that is ready, or empty.
func (i infrastructure) uid() string {
	if !i.ready() {
		return ""
	}
	return i.account.UID
}

// readInfrastructure reads the condition TokenInfrastructureReady. It takes
// nothing from it but one of the two names that the add-on may have in its own
// cluster's namespace, and a UID.
// See docs/reference/wire-contract.md#token-infrastructure.
func readInfrastructure(cluster string, addOn *addonv1beta1.ManagedClusterAddOn) infrastructure {
	condition := apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionTokenInfrastructureReady)
	switch {
	case condition == nil:
		return infrastructure{waiting: driver.Waiting{Reason: ReasonPending, Message: fmt.Sprintf(
			"waiting for the hub's add-on manager to make the ServiceAccount of add-on %s in namespace %s; if it does not, check on the hub: kubectl -n %s get pods",
			addOn.Name, cluster, names.HubNamespace)}}
	case condition.Status != metav1.ConditionTrue:
		return infrastructure{failing: condition.Status == metav1.ConditionFalse, waiting: driver.Waiting{Reason: ReasonFailed, Message: fmt.Sprintf(
			"the hub's add-on manager has no ServiceAccount ready for add-on %s, it says: %s", addOn.Name, quote(condition.Message))}}
	}
	account, ok := names.ParseTokenServiceAccount(condition.Message)
	if !ok {
		return infrastructure{failing: true, waiting: driver.Waiting{Reason: ReasonUnreadable, Message: fmt.Sprintf(
			"the hub's condition %s is True but names no ServiceAccount with its UID: %s; check the version of the hub's add-on manager",
			names.ConditionTokenInfrastructureReady, quote(condition.Message))}}
	}
	allowed := names.AddOnServiceAccounts(cluster, addOn.Name)
	if account.Namespace != cluster || !slices.Contains(allowed, account.Name) {
		return infrastructure{failing: true, waiting: driver.Waiting{Reason: ReasonRefused, Message: fmt.Sprintf(
			"the hub's condition %s names ServiceAccount %s, but add-on %s may only be %s/%s or %s/%s, so no token is requested; find out who wrote that condition",
			names.ConditionTokenInfrastructureReady, quote(account.Namespace+"/"+account.Name), addOn.Name, cluster, allowed[0], cluster, allowed[1])}}
	}
	return infrastructure{account: account, changed: condition.LastTransitionTime.Time}
}

// settling reports whether the ServiceAccount became ready just now, so that
// not every API server of the hub may know yet what the cluster may do with it.
// Where the clocks differ by more than that, it never does.
func (i infrastructure) settling(now time.Time) bool { return now.Sub(i.changed).Abs() < settleTime }

// quote makes what the hub said fit for a message: bounded and printable.
func quote(s string) string { return strconv.QuoteToASCII(excerpt.Of(s, 256)) }
