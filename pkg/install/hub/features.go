package hub

import (
	"slices"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Feature is an optional part of the hub.
type Feature string

// The features.
const (
	// TokenAuthorizer is the token authorizer.
	TokenAuthorizer Feature = "token-authorizer"
	// TokenService is its token exchange endpoint (RFC 8693).
	TokenService Feature = "token-service"
)

// Features are all of them.
func Features() []Feature { return []Feature{TokenAuthorizer, TokenService} }

// FeatureChoice turns features on and off. Features in neither list stay as they are.
type FeatureChoice struct {
	On, Off []Feature
	// TokenAuthorizerTLS is the Secret with the token authorizer's serving
	// certificate; empty retains the live one, and the operator of a new hub issues
	// one.
	TokenAuthorizerTLS string
}

// empty reports whether nothing is set.
func (f FeatureChoice) empty() bool {
	return len(f.On)+len(f.Off) == 0 && f.TokenAuthorizerTLS == ""
}

// annotations returns the ClusterManager's annotations about features.
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
			// Set, because another field manager may own the value "true".
			wanted[annotation] = "false"
		}
	}
	if f.TokenAuthorizerTLS != "" {
		wanted[names.AnnotationTokenAuthorizerTLS] = f.TokenAuthorizerTLS
	}
	return wanted
}
