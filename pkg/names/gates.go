package names

// GateNetworkPolicies is a feature gate of upstream's operators, which they read
// from the gates of registration. The OCM API module does not list it.
// See docs/reference/wire-contract.md#feature-gates.
const GateNetworkPolicies = "NetworkPolicies"
