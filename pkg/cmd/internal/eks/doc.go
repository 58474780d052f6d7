// Package eks is what several commands know about AWS: whose credentials they run
// with and what is wrong with those, which EKS cluster the kubeconfig leads to, and
// which IAM roles a hub recorded.
//
// It only looks, and uses credentials for nothing but to find out whose they are.
package eks
