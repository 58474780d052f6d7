package signer_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/signer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// TestKeysOfOpenShift: the Secret has any number of keys, and where there is none
// the key set of the API server is read; what cannot be read retires nothing.
func TestKeysOfOpenShift(t *testing.T) {
	t.Parallel()
	first, firstID := inPEM(t, "RS256")
	second, secondID := inPEM(t, "ES256")
	for _, tc := range []struct {
		name  string
		data  map[string][]byte
		want  []string
		wrong bool
	}{
		{name: "no Secret", want: []string{"published"}},
		{name: "one key", data: map[string][]byte{names.OpenShiftSignerKey: first, "service-account.key": []byte("private")}, want: []string{firstID}},
		{name: "two keys", data: map[string][]byte{names.OpenShiftSignerKey: slices.Concat(first, []byte("\n"), second)}, want: []string{firstID, secondID}},
		{name: "no key", data: map[string][]byte{names.OpenShiftSignerKey: []byte("soon")}, wrong: true},
		{name: "another key", data: map[string][]byte{"service-account.key": []byte("private")}, wrong: true},
		{name: "something else", data: map[string][]byte{names.OpenShiftSignerKey: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})}, wrong: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithScheme(scheme.New())
			if tc.data != nil {
				builder.WithObjects(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: names.OpenShiftSignerNamespace, Name: names.OpenShiftSignerSecret}, Data: tc.data,
				})
			}
			got, err := signer.OpenShift(builder.Build(), func(context.Context) ([]string, error) { return []string{"published"}, nil })(t.Context())
			if !slices.Equal(got, tc.want) || (err != nil) != tc.wrong {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// inPEM returns a public key and the id that an API server gives it.
func inPEM(t *testing.T, algorithm string) (text []byte, id string) {
	t.Helper()
	key := issuer.NewKey(t, algorithm)
	der, err := x509.MarshalPKIXPublicKey(key.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), key.ID
}
