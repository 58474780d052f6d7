package install

import (
	"slices"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Feature is a part of the hub that a user may want or not.
type Feature string

// The features.
const (
	// TokenAuthorizer is the token authorizer.
	TokenAuthorizer Feature = "token-authorizer"
	// TokenService has it exchange tokens by RFC 8693 as well.
	TokenService Feature = "token-service"
)

// Features are all of them.
func Features() []Feature { return []Feature{TokenAuthorizer, TokenService} }

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
		for _, key := range []string{names.AnnotationTokenAuthorizer, names.AnnotationTokenService, names.AnnotationTokenAuthorizerTLS} {
			if value := live.Annotations[key]; value != "" {
				wanted[key] = value
			}
		}
	}
	for feature, annotation := range map[Feature]string{
		TokenAuthorizer: names.AnnotationTokenAuthorizer, TokenService: names.AnnotationTokenService,
	} {
		switch {
		case slices.Contains(f.On, feature):
			wanted[annotation] = "true"
		case slices.Contains(f.Off, feature):
			// Said, because leaving it out would not take it from somebody else.
			wanted[annotation] = "false"
		}
	}
	if f.TokenAuthorizerTLS != "" {
		wanted[names.AnnotationTokenAuthorizerTLS] = f.TokenAuthorizerTLS
	}
	return wanted
}
