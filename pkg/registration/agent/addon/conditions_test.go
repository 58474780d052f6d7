package addon_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
)

// TestNothingKnownIsNoCredential: the hub may take away what an old credential
// depends on as soon as a condition says that there is a new one.
func TestNothingKnownIsNoCredential(t *testing.T) {
	t.Parallel()
	if got := addon.UnknownCondition(); got.Status != metav1.ConditionFalse || got.Reason == "" || got.Message == "" {
		t.Errorf("the condition is %+v", got)
	}
}
