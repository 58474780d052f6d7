// Package identity owns what the AWS identities of hubs and managed clusters are
// called and what their IAM policies say: role names, the identifier in them,
// tags, trust policies and access policies. Names, tags and the documents of the
// clusters' roles are the ones of Open Cluster Management's AWS IRSA
// registration, so that either side of a registration can be OCM's.
//
// It is pure: it knows no AWS account, makes no call and reads no file.
package identity
