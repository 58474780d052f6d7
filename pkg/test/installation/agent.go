package installation

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// Agent makes an agent of a cluster known to the hub: it creates the first request
// of the agent and approves it, as an administrator does. The hub controller gives
// the agent its permissions when the cluster is accepted.
func Agent(tb testing.TB, admin client.Client, cluster, agent string) {
	tb.Helper()
	request := Request(tb, admin, cluster, agent)
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	if err := admin.SubResource("approval").Update(tb.Context(), request); err != nil {
		tb.Fatal(err)
	}
}

// Request creates the first request of an agent of a cluster, with a new key, as
// the user of c.
func Request(tb testing.TB, c client.Client, cluster, agent string) *certificatesv1.CertificateSigningRequest {
	tb.Helper()
	key, _, err := pemutil.NewKey()
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   names.AgentUser(cluster, agent),
		Organization: []string{names.ClusterGroup(cluster), names.GroupManagedClusters},
	}}, key)
	if err != nil {
		tb.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-", Labels: map[string]string{names.LabelClusterName: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemutil.EncodeRequest(der), SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: csr.Usages(),
		},
	}
	if err := c.Create(tb.Context(), request); err != nil {
		tb.Fatal(err)
	}
	return request
}
