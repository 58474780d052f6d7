package bootstrap_test

import (
	"bytes"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
)

// TestEveryPinCounts: with several pins, as while a hub's CA is rotated, each of
// them names an authority that is trusted, and no other is.
func TestEveryPinCounts(t *testing.T) {
	t.Parallel()
	before, after, evil := newAuthority(t, "before"), newAuthority(t, "after"), newAuthority(t, "evil")
	pins := []bootstrap.CAHash{before.hash(), after.hash()}
	const host = "127.0.0.1"
	for _, tc := range []struct {
		name   string
		server authority
		info   []byte
		want   bootstrap.Kind
		ca     []byte
	}{
		{name: "the first", server: before, info: clusterInfo(t, before.pem), ca: before.pem},
		{name: "the second", server: after, info: clusterInfo(t, after.pem), ca: after.pem},
		{
			name: "both and another", server: after,
			info: clusterInfo(t, bytes.Join([][]byte{evil.pem, before.pem, after.pem}, nil)),
			ca:   append(bytes.Clone(after.pem), before.pem...), // The chain that the server shows comes first.
		},
		{name: "another hub", server: evil, info: clusterInfo(t, evil.pem), want: bootstrap.Mismatch},
		{name: "another hub that publishes ours as well", server: evil, info: clusterInfo(t, append(bytes.Clone(evil.pem), before.pem...)), want: bootstrap.Untrusted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := newHub(t, tc.server.chain(t, host), tc.info)
			got, err := bootstrap.Discover(t.Context(), bootstrap.Endpoint{Server: server.URL, Pins: pins})
			if kindOf(err) != tc.want {
				t.Fatalf("error %v, want kind %q", err, tc.want)
			}
			if !bytes.Equal(bytes.TrimSpace(got.Cluster.CertificateAuthorityData), bytes.TrimSpace(tc.ca)) {
				t.Errorf("authority:\n%s", got.Cluster.CertificateAuthorityData)
			}
		})
	}
}
