package addon_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// TestNothingKnownIsNoCredential: the hub may take away what an old credential
// depends on as soon as a condition says that there is a new one.
func TestNothingKnownIsNoCredential(t *testing.T) {
	t.Parallel()
	for _, auth := range []driver.AuthType{driver.CSR, driver.Token} {
		if got := addon.UnknownCondition(auth); got.Status != metav1.ConditionFalse || got.Reason == "" || got.Message == "" {
			t.Errorf("%s: the condition is %+v", auth, got)
		}
	}
}
