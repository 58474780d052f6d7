package conversion_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// BenchmarkAnswer answers for one add-on with two registrations, which is what
// an API server asks for most.
func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"` + beta.String() + `","objects":[` +
		`{"apiVersion":"` + alpha.String() + `","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},"spec":{"installNamespace":"x"},` +
		`"status":{"kubeClientDriver":"token","registrations":[{"signerName":"` + kubeSigner + `","subject":{"user":"u","groups":["g"],"organizationUnit":["o"]}},` +
		`{"signerName":"example.com/s","subject":{"user":"v"}}]}}]}}`)
	for b.Loop() {
		if _, err := conversion.Answer(body); err != nil {
			b.Fatal(err)
		}
	}
}
