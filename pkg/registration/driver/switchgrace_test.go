package driver_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

func TestSwitchGraceLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	stored := func(status metav1.ConditionStatus, ago time.Duration) *metav1.Condition {
		return &metav1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
	}
	for name, tc := range map[string]struct {
		stored *metav1.Condition
		want   time.Duration
	}{
		"nothing is reported yet":        {nil, driver.SwitchGrace},
		"it is not stored":               {stored(metav1.ConditionFalse, time.Hour), driver.SwitchGrace},
		"it is stored just now":          {stored(metav1.ConditionTrue, 0), driver.SwitchGrace},
		"it was stored a minute ago":     {stored(metav1.ConditionTrue, time.Minute), driver.SwitchGrace - time.Minute},
		"it was stored long ago":         {stored(metav1.ConditionTrue, time.Hour), 0},
		"the agent's clock is far ahead": {stored(metav1.ConditionTrue, -time.Hour), driver.SwitchGrace},
	} {
		if got := driver.SwitchGraceLeft(tc.stored, now); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
