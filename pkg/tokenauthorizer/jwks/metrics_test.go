package jwks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p, down := issuer.NewProvider(t, key), issuer.NewProvider(t, key)
	down.Down()
	e := start(t, remote("good", sharedIssuer, p), remote("down", "https://down.example.com", down), everyone())
	e.publish(t, "agent", sharedIssuer, issuer.NewKey(t, jwk.ES256))
	e.refuses(t, sharedIssuer, "junk", denial.UnknownKey)
	e.publish(t, "other", "https://other.example.com", issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256))
	e.refuses(t, "https://other.example.com", "junk", denial.UnknownKey)

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(e.Metrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				name = append(name, label.GetName()+"="+label.GetValue())
			}
			got[strings.Join(name, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	now := float64(e.clock.Now().Truncate(time.Millisecond).UnixMilli()) / 1000
	want := map[string]float64{
		"ocm_extauthz_keys cluster=good":                                1,
		"ocm_extauthz_keys cluster=down":                                0,
		"ocm_extauthz_keys cluster=agent":                               1,
		"ocm_extauthz_keys cluster=other":                               2,
		"ocm_extauthz_key_last_success_timestamp_seconds cluster=good":  now,
		"ocm_extauthz_key_last_success_timestamp_seconds cluster=agent": now,
		"ocm_extauthz_key_last_success_timestamp_seconds cluster=other": now,
		"ocm_extauthz_key_refresh_total cluster=good result=success":    2,
		"ocm_extauthz_key_refresh_total cluster=good result=failure":    0,
		"ocm_extauthz_key_refresh_total cluster=down result=success":    0,
		"ocm_extauthz_key_refresh_total cluster=down result=failure":    1,
		"ocm_extauthz_key_refresh_total cluster=agent result=success":   1,
		"ocm_extauthz_key_refresh_total cluster=agent result=failure":   0,
		"ocm_extauthz_key_refresh_total cluster=other result=success":   1,
		"ocm_extauthz_key_refresh_total cluster=other result=failure":   0,
		"ocm_extauthz_unknown_kid_total cluster=good":                   0,
		"ocm_extauthz_unknown_kid_total cluster=down":                   0,
		"ocm_extauthz_unknown_kid_total cluster=agent":                  0,
		"ocm_extauthz_unknown_kid_total cluster=other":                  1,
		"ocm_extauthz_unknown_kid_total cluster=unknown":                1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
