// Package metric registers the metrics of the token authorizer.
//
// It owns their common prefix and what happens when a second authorizer runs
// in the same process (they share). It never decides what is measured.
package metric

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Prefix is the beginning of every metric of the token authorizer.
const Prefix = "ocm_extauthz_"

// UnknownCluster is the value of the label cluster until a configured cluster is
// proven: a token never determines labels.
const UnknownCluster = "unknown"

// Register returns the metric, or the one that another part of this process has
// registered already. With no registerer the metric is not exported.
func Register[M prometheus.Collector](registerer prometheus.Registerer, m M) (M, error) {
	if registerer == nil {
		return m, nil
	}
	err := registerer.Register(m)
	if already := new(prometheus.AlreadyRegisteredError); errors.As(err, already) {
		if earlier, ok := already.ExistingCollector.(M); ok {
			return earlier, nil
		}
	}
	return m, err
}
