// Package ststoken makes the bearer tokens that Amazon EKS and the
// aws-iam-authenticator accept: a presigned request that asks AWS STS who signed
// it, bound to the name of one EKS cluster by a signed header. A token proves an
// AWS identity and is valid for 15 minutes; AWS knows nothing of it until an API
// server sends the request.
//
// The package uses the default credential chain of the AWS SDK: a web identity token
// (IAM roles for service accounts), EKS Pod Identity, or another configured source.
// It never signs for another endpoint than
// AWS's own, and never logs a token or a credential.
package ststoken
