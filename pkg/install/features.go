package install

import (
	"slices"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Feature is a part of the hub that a user may want or not.
type Feature string

// TokenAuthorizer is the token authorizer.
const TokenAuthorizer Feature = "token-authorizer"

// Features are all of them.
func Features() []Feature { return []Feature{TokenAuthorizer} }

// FeatureChoice says which features are wanted. What neither list names stays
// as it is.
type FeatureChoice struct {
	On, Off []Feature
	// TokenAuthorizerTLS is the Secret that the token authorizer serves with;
	// empty keeps, on a new hub the operator issues one.
	TokenAuthorizerTLS string
}

// empty reports whether nothing is said.
func (f FeatureChoice) empty() bool {
	return len(f.On)+len(f.Off) == 0 && f.TokenAuthorizerTLS == ""
}

// annotations are those of the ClusterManager about features.
func (f FeatureChoice) annotations(live *operatorv1.ClusterManager) map[string]string {
	wanted := map[string]string{}
	if live != nil {
		for _, key := range []string{names.AnnotationTokenAuthorizer, names.AnnotationTokenAuthorizerTLS} {
			if value := live.Annotations[key]; value != "" {
				wanted[key] = value
			}
		}
	}
	switch {
	case slices.Contains(f.On, TokenAuthorizer):
		wanted[names.AnnotationTokenAuthorizer] = "true"
	case slices.Contains(f.Off, TokenAuthorizer):
		// Said, because leaving it out would not take it from somebody else.
		wanted[names.AnnotationTokenAuthorizer] = "false"
	}
	if f.TokenAuthorizerTLS != "" {
		wanted[names.AnnotationTokenAuthorizerTLS] = f.TokenAuthorizerTLS
	}
	return wanted
}
