// Package authenticator runs aws-iam-authenticator, the token webhook that EKS
// documents as its own, between the emulator of package aws and a real API
// server. What it lets in, a hub on EKS lets in.
//
//	hub := authenticator.StartHub(t, cloud, aws.Cluster{ARN: ...})
//	hub.ConfigForToken(token) // the user of the access entries and aws-auth
//
// It maps identities as EKS does: access entries first, under the unique id that
// the role had when the entry was created, then the ConfigMap aws-auth in
// kube-system.
//
// The program is bin/aws-iam-authenticator, which the first test that needs it builds,
// in minutes.
//
// Its invariant: the address that the API server knows stays, also while the
// program does not run.
package authenticator
