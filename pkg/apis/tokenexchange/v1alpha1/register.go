package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "tokenexchange.open-cluster-management.io"

// Name is what the one TokenExchangePolicy of a namespace and the one
// TokenExchangeDefaults are called.
const Name = "default"

// GroupVersion returns the group and version of these types.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	version := GroupVersion()
	s.AddKnownTypes(version,
		&TokenExchangePolicy{}, &TokenExchangePolicyList{},
		&TokenExchangeDefaults{}, &TokenExchangeDefaultsList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}
