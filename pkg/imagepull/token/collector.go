package token

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
)

// stateValid is the state of a pull secret that needs nothing.
const stateValid = "Valid"

// state shows, when metrics are read, in which state the pull secrets are.
type state struct {
	// list lists the pull secrets, nil while another process is the leader.
	list    func() []corev1.Secret
	inspect func(*corev1.Secret) (credential.Facts, bool)
	now     func() time.Time

	secrets *prometheus.Desc
	expiry  *prometheus.Desc
}

// newState returns the collector of a Reconciler, which works once elected is closed.
func newState(ctx context.Context, r *Reconciler, elected <-chan struct{}) *state {
	return &state{
		list: func() []corev1.Secret {
			select {
			case <-elected:
			default:
				return nil
			}
			var found corev1.SecretList
			_ = r.Client.List(ctx, &found, client.UnsafeDisableDeepCopy) // The cache is stopping.
			return found.Items
		},
		inspect: func(secret *corev1.Secret) (credential.Facts, bool) { return r.facts(ctx, secret) },
		now:     r.Clock.Now,
		secrets: prometheus.NewDesc("ocm_imagepull_secrets",
			"Number of pull secrets by state: Valid, or the reason for the replacement of the token.", []string{"state"}, nil),
		expiry: prometheus.NewDesc("ocm_imagepull_first_expiry_seconds",
			"When the first token of all pull secrets expires, in seconds since the epoch; absent without pull secrets.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(descs chan<- *prometheus.Desc) { descs <- s.secrets; descs <- s.expiry }

// Collect implements prometheus.Collector.
func (s *state) Collect(metrics chan<- prometheus.Metric) {
	counts, now := map[string]int{}, s.now()
	var first time.Time
	secrets := s.list()
	for i := range secrets {
		facts, ok := s.inspect(&secrets[i])
		if !ok {
			continue
		}
		name := stateValid
		if need, due := credential.Due().Evaluate(facts, now); due {
			name = string(need.Reason)
		}
		counts[name]++
		if end := facts.Validity.NotAfter; end.Unix() > 0 && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	for name, count := range counts {
		metrics <- prometheus.MustNewConstMetric(s.secrets, prometheus.GaugeValue, float64(count), name)
	}
	if !first.IsZero() {
		metrics <- prometheus.MustNewConstMetric(s.expiry, prometheus.GaugeValue, float64(first.Unix()))
	}
}

// facts returns the input of the rules for a Secret, and false for one that needs no
// token.
func (r *Reconciler) facts(ctx context.Context, secret *corev1.Secret) (credential.Facts, bool) {
	ref, ok := r.Form.Of(secret)
	if !ok {
		return credential.Facts{}, false
	}
	account, err := owner.Account(ctx, r.Client, secret.Namespace, ref)
	if err == nil && account != nil && r.Form.Superseded(secret, account) {
		return credential.Facts{}, false
	}
	return inspect(secret, r.want(ref, r.Hosts.List())), true
}
