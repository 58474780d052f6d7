// Package approval accepts and denies clusters on behalf of an administrator of
// the hub. It decides which of the requests for a cluster name may be approved,
// approves or denies their CertificateSigningRequests and sets
// hubAcceptsClient.
//
// The decision is a pure function. It never accepts a name that two requesters
// or two keys request until the administrator has chosen one of them, and it
// is idempotent: an Approver ends in the chosen state from every earlier one.
// The hub controllers act on the result (pkg/registration/hub); this package
// writes nothing else, and prints nothing.
package approval
