// Package awsauth owns the edits of the ConfigMap kube-system/aws-auth, with which
// an EKS cluster maps IAM roles to users: finding, adding and removing the line of
// one role.
//
// The ConfigMap maps the nodes and the administrators of the hub as well. The
// package therefore leaves what is not of its role as it is, comments and spelling
// included, checks every edit by reading its result, writes only over the version
// that it read, and never writes a map that it could not read.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/auth-configmap.html
package awsauth
