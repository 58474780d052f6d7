// Package pullsecret reads the image pull secret that init and join left in the
// operators' namespace, for the components' namespaces to get a copy.
package pullsecret
