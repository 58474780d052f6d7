// Package awsirsa is the registration driver for hubs and managed clusters on
// Amazon EKS, which signs no client certificates. An agent is known to the hub by
// an IAM role: the hub creates one role for each cluster that it accepts and lets
// the cluster's own role assume it, and the agent presents tokens of that role.
//
// A credential of this driver is no file but the right to assume a role: it has no
// end until the hub takes the role away, and needs no renewal. What is stored is
// the user entry of the kubeconfig, a credential plugin that is this same program.
//
// The package never stores or logs an AWS credential. docs/guides/aws.md describes what
// an AWS account must have.
package awsirsa
