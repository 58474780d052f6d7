package csr_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

func TestReported(t *testing.T) {
	t.Parallel()
	want := credential.Validity{NotBefore: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)}
	read := func(status metav1.ConditionStatus, message string) (credential.Validity, bool) {
		return csr.Reported([]metav1.Condition{{Type: names.ConditionCertificateRotated, Status: status, Message: message}})
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700 MST"} {
		message := "client certificate rotated starting from " + want.NotBefore.Format(layout) + " to " + want.NotAfter.Format(layout)
		got, ok := read(metav1.ConditionTrue, message)
		if !ok || !got.NotBefore.Equal(want.NotBefore) || !got.NotAfter.Equal(want.NotAfter) {
			t.Errorf("%q: %+v, %v", message, got, ok)
		}
		if got, ok := read(metav1.ConditionFalse, message); ok {
			t.Errorf("of a failure: %+v", got)
		}
	}
	for _, message := range []string{"", "rotated", "starting from x to y", "starting from 2030-01-01T00:00:00Z to y", "to 2030-01-01T00:00:00Z"} {
		if got, ok := read(metav1.ConditionTrue, message); ok {
			t.Errorf("%q: %+v", message, got)
		}
	}
	if _, ok := csr.Reported(nil); ok {
		t.Error("without a condition")
	}
}
