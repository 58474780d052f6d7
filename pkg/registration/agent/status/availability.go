package status

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	// outageGrace is how long the API server must fail before it is reported
	// unavailable: a restart is shorter.
	outageGrace = 20 * time.Second
	// outageRetry is how often it is probed within the grace period.
	outageRetry = 5 * time.Second
)

// Probe is the response of the managed cluster's API server to a health check.
type Probe struct {
	// Code is the HTTP status, 0 if there was no response.
	Code int
	// Err is why there was no response, or not the right one.
	Err error
}

func (p Probe) ok() bool { return p.Err == nil && p.Code == http.StatusOK }

// outage records since when the API server has been failing.
type outage struct {
	since time.Time
}

// health is the availability of the cluster after a probe.
type health struct {
	// condition is nil within the grace period.
	condition *metav1.Condition
	// pending is true if another probe follows soon.
	pending bool
}

func (o *outage) evaluate(now time.Time, p Probe) health {
	if p.ok() {
		o.since = time.Time{}
		return health{condition: &metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
			Reason: names.ReasonAvailable, Message: names.MessageAvailable,
		}}
	}
	if o.since.IsZero() {
		o.since = now
	}
	if now.Sub(o.since) < outageGrace {
		return health{pending: true}
	}
	return health{pending: true, condition: &metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionFalse,
		Reason: names.ReasonAPIServerUnavailable, Message: fmt.Sprintf(names.MessageAPIServerUnavailable, p.Code, p.Err),
	}}
}
