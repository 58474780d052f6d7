package inventory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func labelled(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "c1", Name: name, Labels: map[string]string{
		names.LabelAddOnTokenName: "a1", names.LabelTokenInfrastructure: "true",
	}}
}

func infrastructureOf(account string) []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: labelled(account)},
		&rbacv1.Role{ObjectMeta: labelled("a1-token-role")},
		&rbacv1.RoleBinding{ObjectMeta: labelled("a1-token-role")},
		&corev1.ServiceAccount{ObjectMeta: labelled("somebody-else")},
		&rbacv1.Role{ObjectMeta: labelled("somebody-else")},
	}
}

func request(name string, age time.Duration, conditions ...certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequest {
	r := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(now().Add(-age)),
		Labels: map[string]string{names.LabelClusterName: "c1", names.LabelAddOnName: "a1"},
	}}
	r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	for _, kind := range conditions {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind})
	}
	return r
}

// TestOrphans shows what is taken for a orphan, and more what is not.
func TestOrphans(t *testing.T) {
	t.Parallel()
	all := []string{"serviceaccount/c1/c1-a1-agent", "role/c1/a1-token-role", "rolebinding/c1/a1-token-role"}
	of := func(objs ...*addonv1beta1.ManagedClusterAddOn) []*addonv1beta1.ManagedClusterAddOn { return objs }
	requests := []certificatesv1.CertificateSigningRequest{
		request("addon-pending", 2*time.Hour),
		request("addon-denied", 2*time.Hour, certificatesv1.CertificateDenied),
		request("addon-denied-just-now", time.Minute, certificatesv1.CertificateDenied),
		request("mine", 2*time.Hour, certificatesv1.CertificateDenied),
	}
	custom := custom()
	for name, tc := range map[string]struct {
		hub  inventory.HubObjects
		want []string
	}{
		"nothing": {},
		"the add-on is gone": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), Requests: requests},
			slices.Concat(all, []string{"certificatesigningrequest/addon-pending", "certificatesigningrequest/addon-denied", "certificatesigningrequest/addon-denied-just-now"}),
		},
		"in use": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), AddOns: of(addOn(list(kube("token", tokenUser)), ready(), refreshed(goodToken)))}, nil,
		},
		"nothing is declared yet": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), AddOns: of(addOn(list(kube("", ""))))}, nil,
		},
		"the hub part has said nothing yet": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), AddOns: of(addOn(nil))}, nil,
		},
		"the other spelling": {
			inventory.HubObjects{Infrastructure: infrastructureOf("a1-agent"), AddOns: of(addOn(list(kube("token", tokenUser)), ready()))},
			[]string{"serviceaccount/c1/a1-agent"},
		},
		"the other spelling, as long as it may be the one": {
			inventory.HubObjects{Infrastructure: infrastructureOf("a1-agent"), AddOns: of(addOn(list(kube("token", tokenUser))))}, nil,
		},
		"certificates by now": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), Requests: requests, AddOns: of(addOn(list(kube("csr", "u")), ready(), rotated(goodCertificate)))},
			slices.Concat(all, []string{"certificatesigningrequest/addon-denied", "managedclusteraddon/c1/a1 condition TokenInfrastructureReady"}),
		},
		"tokens by now": {
			inventory.HubObjects{Requests: requests[:1], AddOns: of(addOn(list(kube("token", tokenUser)), ready(), rotated(goodCertificate)))},
			[]string{"certificatesigningrequest/addon-pending", "managedclusteraddon/c1/a1 condition ClusterCertificateRotated"},
		},
		"tokens, and a custom signer": {
			inventory.HubObjects{AddOns: of(addOn(list(kube("token", tokenUser), custom), ready(), rotated(goodCertificate)))}, nil,
		},
		"only a custom signer": {
			inventory.HubObjects{Infrastructure: infrastructureOf("c1-a1-agent"), AddOns: of(addOn(list(custom), rotated(goodCertificate), refreshed(goodToken)))},
			slices.Concat(all, []string{"managedclusteraddon/c1/a1 condition AddonTokenRefreshed"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, l := range tc.hub.Orphans(now()) {
				got = append(got, l.String())
				if l.Why == "" || l.Object == nil {
					t.Errorf("%s has no reason or object", l)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
