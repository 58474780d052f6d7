// Package aws is the part of AWS that registration by AWS identities meets, for
// tests on one machine: STS, IAM and EKS of any number of accounts, behind an
// HTTPS proxy, so that the code under test runs with its endpoints untouched.
//
//	cloud := aws.Start(t)
//	cloud.AddProvider(t, account, issuer, managed.KeySet(t)) // of a real API server
//	cloud.AddRole(t, aws.Role{ARN: ..., Trust: ..., Policies: ...})
//	cloud.AddCluster(t, aws.Cluster{ARN: ..., AuthenticationMode: "API"})
//	... run something with cloud.Environment() ...
//	cloud.Calls(), cloud.Role(arn), cloud.AccessEntries(arn)
//
// It verifies what AWS verifies: Signature Version 4 (package sigv4, which shares
// no code with the SDK), web identity tokens against the keys of their issuer,
// trust and identity policies (package policy), tags of principals, both sides of
// an access across accounts, and the limits of names, sessions and quotas. Every
// call is recorded with the elements of policies that allowed it.
//
// Faults: Inject fails chosen calls before or after their effect, or leaves them
// without an answer; Propagation delays the sight of new roles and trust policies;
// Advance moves the time of sessions and tokens; Skew moves the clock that
// signatures are checked by. No fault needs a real wait.
//
// It is our reading of the documentation of AWS, cited where it surprises. It has
// no service control policies, permissions boundaries, session policies or
// quotas beyond those of roles. What it does not implement, it refuses.
//
// Its invariant: no request to any other host, and none of a caller whose policy
// does not allow it, is ever answered with success.
package aws
