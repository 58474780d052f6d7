package kubelet

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kubelet/config/v1"
	kubeletv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Verb is the verb that a node needs for an audience before it gets tokens for it
// (KEP-4412); Kubernetes uses the audience as the resource.
const Verb = "request-serviceaccounts-token-audience"

// Settings is how nodes pull.
type Settings struct {
	// Registries are the hosts, as in the names of images.
	Registries []string
	// Audience is the audience that the registries expect.
	Audience string
	// Username is sent with the token.
	Username string
}

// Config returns the configuration of the kubelet.
func (s Settings) Config() *configv1.CredentialProviderConfig {
	return &configv1.CredentialProviderConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1.SchemeGroupVersion.String(), Kind: "CredentialProviderConfig"},
		Providers: []configv1.CredentialProvider{{
			Name: names.CredentialProvider, MatchImages: s.Registries,
			APIVersion:           kubeletv1.SchemeGroupVersion.String(),
			DefaultCacheDuration: &metav1.Duration{}, // Each answer has its own.
			Args:                 []string{"--username=" + s.Username},
			TokenAttributes: &configv1.ServiceAccountTokenAttributes{
				ServiceAccountTokenAudience: s.Audience,
				// The credential is the token, so it is valid as long as that.
				CacheType:             configv1.TokenServiceAccountTokenCacheType,
				RequireServiceAccount: new(true),
			},
		}},
	}
}

// Permission returns what lets nodes request tokens for the audience, of the
// ServiceAccounts of their Pods.
func (s Settings) Permission() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: names.CredentialProvider}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	role := &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{s.Audience}, Verbs: []string{Verb},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	}
	return role, binding
}
