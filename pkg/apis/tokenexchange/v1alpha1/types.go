package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenExchangePolicy says which tokens of a managed cluster the token
// authorizer accepts, and which ServiceAccounts of the hub they become. Its
// namespace is the cluster's namespace on the hub, and its name is "default".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=tep
// +kubebuilder:printcolumn:name="Issuer",type=string,JSONPath=`.spec.issuer`,priority=1
// +kubebuilder:printcolumn:name="Rules",type=integer,JSONPath=`.status.rules`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Warnings",type=string,JSONPath=`.status.conditions[?(@.type=="Warnings")].status`
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.decisions.allowed`
// +kubebuilder:printcolumn:name="Denied",type=integer,JSONPath=`.status.decisions.denied`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a namespace has one TokenExchangePolicy, and its name is default"
type TokenExchangePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the cluster's tokens may become.
	//
	// +required
	Spec TokenExchangePolicySpec `json:"spec"`
	// status is what the token authorizer makes of it.
	//
	// +optional
	Status TokenExchangeStatus `json:"status,omitzero"`
}

// TokenExchangePolicySpec is the policy of one cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || has(self.issuer)",message="keys need the issuer of the tokens that they sign"
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || !has(self.keys.discovery) || has(self.keys.discovery.url) || (isURL(self.issuer) && url(self.issuer).getScheme() == 'https' && url(self.issuer).getHostname().size() > 0)",message="discovery without a url needs an issuer that is an https URL"
type TokenExchangePolicySpec struct {
	// issuer is the exact "iss" of the cluster's tokens. It may be left out when the
	// cluster's agent publishes it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	Issuer string `json:"issuer,omitempty"`
	// keys is where the keys of the cluster's tokens come from. Without it they are
	// those that the cluster's agent publishes on the hub.
	//
	// +optional
	Keys *Keys `json:"keys,omitempty"`

	TokenRules `json:",inline"`

	// acceptLegacyTokens also accepts the tokens of Secrets, which have no audience
	// and never expire. Rules with audiences never match them.
	//
	// +optional
	AcceptLegacyTokens bool `json:"acceptLegacyTokens,omitempty"`
	// targetNamespaces are the namespaces of the hub that the rules may lead to,
	// regardless of what they say. Patterns may contain *. Without it the rules bound
	// themselves. Changing it takes the verb escalate on this resource, so that it
	// bounds those who may change the rules only.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	TargetNamespaces []NamespaceBound `json:"targetNamespaces,omitempty"`
	// allow are the rules. They are tried in order and the first that matches
	// decides; a token that no rule matches is denied.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="[self.mapTo.__namespace__, self.mapTo.name].all(t, !t.matches('[{](namespace|name)[}][^.]*[{](namespace|name)[}]') && !t.matches('[{]name[}].*[{]name[}]'))",message="put a dot between {namespace} and {name}, and use {name} once: otherwise two ServiceAccounts of the cluster can become the same one of the hub"
	Allow []Rule `json:"allow,omitempty"`
}

// TokenRules are demands on a cluster's tokens.
type TokenRules struct {
	// audiences are those that tokens must have been issued for; one is enough.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Audiences []Audience `json:"audiences,omitempty"`
	// maxTokenAge is how long after its issue a token is accepted, regardless of its
	// expiry. The default is 1h, and 0s is no limit.
	//
	// +optional
	MaxTokenAge Duration `json:"maxTokenAge,omitempty"`
	// clockSkew is how far the cluster's clock may be ahead, at most 5m. The default
	// is 10s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('5m')",message="must be 5m or less: fix the clocks instead"
	ClockSkew Duration `json:"clockSkew,omitempty"`
	// requireBoundPod accepts only tokens that are bound to a Pod.
	//
	// +optional
	RequireBoundPod *bool `json:"requireBoundPod,omitempty"`
	// limits bound the TokenRequests that the cluster's workloads cause.
	//
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// Limits bound TokenRequests.
type Limits struct {
	// cluster is for all workloads of a cluster together.
	//
	// +optional
	Cluster *Rate `json:"cluster,omitempty"`
	// identity is for each ServiceAccount.
	//
	// +optional
	Identity *Rate `json:"identity,omitempty"`
}

// Rate is a token bucket.
type Rate struct {
	// perSecond is how many there may be in the long run.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	PerSecond int32 `json:"perSecond"`
	// burst is how many there may be at once.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Burst int32 `json:"burst"`
}

// Duration is a time span such as 1h or 90s.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
type Duration = string

// Pattern is a name in which * stands for any characters.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*|[-a-z0-9.*]*\*[-a-z0-9.*]*)$`
type Pattern = string

// NamespacePattern is a namespace in which * stands for any characters.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?|[-a-z0-9*]*(\*[-*]*[a-z0-9]|[a-z0-9][-a-z0-9]*\*)[-a-z0-9*]*)$`
type NamespacePattern = string

// NamespaceBound is a NamespacePattern that does not match everything.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|[-a-z0-9*]*(\*[-*]*[a-z0-9]|[a-z0-9][-a-z0-9]*\*)[-a-z0-9*]*)$`
type NamespaceBound = string

// Audience is for whom a token was issued.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`\S`
type Audience = string

// Rule lets ServiceAccounts of a cluster become a ServiceAccount of the hub.
//
// +kubebuilder:validation:XValidation:rule="!self.mapTo.__namespace__.matches('[{]name[}]') || (has(self.target) && has(self.target.namespaces))",message="list target.namespaces: otherwise a ServiceAccount's name on the cluster chooses the namespace of the hub"
// +kubebuilder:validation:XValidation:rule="!self.mapTo.__namespace__.matches('[{]namespace[}]') || (has(self.namespaces) && self.namespaces.all(n, n != '*')) || (has(self.target) && has(self.target.namespaces))",message="list namespaces other than * or target.namespaces: otherwise the cluster chooses the namespace of the hub by what it calls its own"
// +kubebuilder:validation:XValidation:rule="!self.mapTo.__namespace__.startsWith('{namespace}') || !has(self.namespaces) || self.namespaces.all(n, !n.startsWith('kube-') && !n.startsWith('open-cluster-management'))",message="no rule may lead to the namespaces kube-* and open-cluster-management* of the hub"
type Rule struct {
	// namespaces of the cluster, as patterns. Without it the rule is for all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Namespaces []NamespacePattern `json:"namespaces,omitempty"`
	// serviceAccounts of those namespaces, as patterns. Without it the rule is for
	// all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ServiceAccounts []Pattern `json:"serviceAccounts,omitempty"`
	// audiences restrict the rule to tokens that were issued for one of them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Audiences []Audience `json:"audiences,omitempty"`
	// requireBoundPod restricts the rule to tokens that are bound to a Pod: others
	// that it matches are denied.
	//
	// +optional
	RequireBoundPod bool `json:"requireBoundPod,omitempty"`
	// mapTo is the ServiceAccount of the hub.
	//
	// +required
	MapTo Mapping `json:"mapTo"`
	// target bounds the ServiceAccount and shapes its token.
	//
	// +optional
	Target *Target `json:"target,omitempty"`
}

// Mapping is a ServiceAccount of the hub. In both fields {cluster}, {namespace}
// and {name} stand for where the token is from.
type Mapping struct {
	// namespace of the ServiceAccount.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-') && !self.startsWith('open-cluster-management')",message="no rule may lead to the namespaces kube-* and open-cluster-management* of the hub"
	// +kubebuilder:validation:Pattern=`^([-a-z0-9]|\{(cluster|namespace|name)\})+$`
	// +kubebuilder:validation:XValidation:rule="self.replace('{cluster}', 'c').replace('{namespace}', 'n').replace('{name}', 's').matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must make a valid namespace: lower case letters, digits and dashes"
	Namespace string `json:"namespace"`
	// name of the ServiceAccount.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([-.a-z0-9]|\{(cluster|namespace|name)\})+$`
	// +kubebuilder:validation:XValidation:rule="self.replace('{cluster}', 'c').replace('{namespace}', 'n').replace('{name}', 's').matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must make a valid name: lower case letters, digits, dashes and dots"
	Name string `json:"name"`
}

// Target bounds the ServiceAccount of the hub and shapes its token.
type Target struct {
	// namespaces of the hub that mapTo may lead to, as patterns.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Namespaces []NamespaceBound `json:"namespaces,omitempty"`
	// audiences of the issued token. The default is the hub API server's own.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Audiences []Audience `json:"audiences,omitempty"`
	// expirationSeconds is the lifetime of the issued token. The default is one hour.
	//
	// +optional
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=4294967295
	ExpirationSeconds int64 `json:"expirationSeconds,omitempty"`
}

// Denial is ServiceAccounts of the hub that no rule reaches: those that match
// both lists, where a list that is left out matches all.
//
// +kubebuilder:validation:XValidation:rule="has(self.targetNamespaces) || has(self.targetServiceAccounts)",message="name targetNamespaces or targetServiceAccounts"
type Denial struct {
	// targetNamespaces are patterns of namespaces.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	TargetNamespaces []NamespacePattern `json:"targetNamespaces,omitempty"`
	// targetServiceAccounts are patterns of names.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	TargetServiceAccounts []Pattern `json:"targetServiceAccounts,omitempty"`
}

// TokenExchangeDefaults is for all clusters: what policies leave out, what no
// policy can open, and the rules of clusters without a policy. Its name is
// "default".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=tokenexchangedefaults,singular=tokenexchangedefaults,scope=Cluster,shortName=ted
// +kubebuilder:printcolumn:name="Rules",type=integer,JSONPath=`.status.rules`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Warnings",type=string,JSONPath=`.status.conditions[?(@.type=="Warnings")].status`
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.decisions.allowed`
// +kubebuilder:printcolumn:name="Denied",type=integer,JSONPath=`.status.decisions.denied`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="there is one TokenExchangeDefaults, and its name is default"
type TokenExchangeDefaults struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what holds for all clusters.
	//
	// +required
	Spec TokenExchangeDefaultsSpec `json:"spec"`
	// status is what the token authorizer makes of it.
	//
	// +optional
	Status TokenExchangeStatus `json:"status,omitzero"`
}

// TokenExchangeDefaultsSpec is what holds for all clusters.
type TokenExchangeDefaultsSpec struct {
	TokenRules `json:",inline"`

	// deny are ServiceAccounts of the hub that no rule reaches. The namespaces kube-*
	// and open-cluster-management* are always denied.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Deny []Denial `json:"deny,omitempty"`
	// allow are the rules of each cluster that publishes its keys on the hub and has
	// no TokenExchangePolicy.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="[self.mapTo.__namespace__, self.mapTo.name].all(t, !t.matches('[{](cluster|namespace|name)[}][^.]*[{](cluster|namespace|name)[}]') && !t.matches('[{]name[}].*[{]name[}]'))",message="put a dot between {cluster}, {namespace} and {name}, and use {name} once: otherwise two ServiceAccounts can become the same one of the hub"
	Allow []Rule `json:"allow,omitempty"`
}

// The conditions of both kinds.
const (
	// ConditionAccepted reports whether the token authorizer decides by the object.
	ConditionAccepted = "Accepted"
	// ConditionWarnings reports whether the object opens more than most users intend.
	ConditionWarnings = "Warnings"
)

// ConditionKeysLoaded reports, on a policy whose keys are fetched from a URL, whether the
// token authorizer has them.
const ConditionKeysLoaded = "KeysLoaded"

// Reasons of ConditionKeysLoaded, with ReasonConflict.
const (
	// ReasonKeysLoaded: the keys were read the last time that the source was asked.
	ReasonKeysLoaded = "Loaded"
	// ReasonKeysKept: they were not, and those of before are used until they are too old.
	ReasonKeysKept = "RefreshFailed"
	// ReasonKeysUnavailable: there are none, and everything is denied.
	ReasonKeysUnavailable = "KeysUnavailable"
)

// Reasons of ConditionAccepted.
const (
	// ReasonAccepted: the rules are in force.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the rules cannot be used, and everything is denied.
	ReasonInvalid = "Invalid"
	// ReasonConflict: the keys are another cluster's as well, and are not accepted.
	ReasonConflict = "KeyConflict"
)

// Reasons of ConditionWarnings.
const (
	// ReasonRisky: the message names what opens more than needed.
	ReasonRisky = "Risky"
	// ReasonNone: there is nothing to warn of.
	ReasonNone = "NoWarnings"
)

// TokenExchangeStatus is what the token authorizer makes of an object.
type TokenExchangeStatus struct {
	// conditions are Accepted and Warnings, and KeysLoaded for keys that are fetched.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// rules is how many rules are in force.
	//
	// +optional
	Rules int32 `json:"rules,omitempty"`
	// decisions counts what was decided by the object. It is brought up to date
	// every few minutes.
	//
	// +optional
	Decisions *Decisions `json:"decisions,omitempty"`
}

// Decisions counts requests.
type Decisions struct {
	// allowed is how many were allowed.
	//
	// +optional
	Allowed int64 `json:"allowed"`
	// denied is how many were denied.
	//
	// +optional
	Denied int64 `json:"denied"`
	// lastUpdateTime is when the counts were written.
	//
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`
}

// TokenExchangePolicyList is a list of TokenExchangePolicy objects.
//
// +kubebuilder:object:root=true
type TokenExchangePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the objects.
	Items []TokenExchangePolicy `json:"items"`
}

// TokenExchangeDefaultsList is a list of TokenExchangeDefaults objects.
//
// +kubebuilder:object:root=true
type TokenExchangeDefaultsList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the objects.
	Items []TokenExchangeDefaults `json:"items"`
}
