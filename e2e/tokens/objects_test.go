package tokens_test

import (
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// impersonation is the right to be anybody.
func impersonation(user string) []client.Object {
	meta := metav1.ObjectMeta{Name: "e2e-impersonation"}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}},
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/scopes", "uids"}, Verbs: []string{"impersonate"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	}
}

// jwkSet is the key set of a signer that no cluster has.
func jwkSet(t *testing.T, s signer) []byte {
	t.Helper()
	keys, err := keyutil.ParsePublicKeysPEM(s.public)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: keys[0], KeyID: "stranger", Use: "sig", Algorithm: "ES256"}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}
