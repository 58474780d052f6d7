// Package podwebhook does for Pods what the webhook of EKS for IAM roles of
// ServiceAccounts does: a Pod whose ServiceAccount has the annotation
// eks.amazonaws.com/role-arn gets a web identity token for STS, and variables that
// lead the SDK to it.
//
// It is our reading of the documentation of amazon-eks-pod-identity-webhook, which
// cannot run here. In addition, it gives such Pods the way to the emulator of
// package aws: its proxy, and its CA in a ConfigMap of the Pod's namespace. No
// endpoint is overridden.
//
// It never changes a Pod whose ServiceAccount has no such annotation.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-configuration.html
package podwebhook
