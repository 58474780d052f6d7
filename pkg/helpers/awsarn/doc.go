// Package awsarn reads and writes the Amazon Resource Names of EKS clusters, IAM
// roles and IAM OIDC providers, and knows the partitions of AWS. A name is
// validated as a whole before any part of it is used.
//
// It knows names only: whether what they name exists is AWS's to say.
package awsarn
