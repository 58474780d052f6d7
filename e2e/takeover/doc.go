// Package takeover holds the end-to-end test of --take-over: local clusters whose
// components are OCM's, by their objects and arguments, and placeholder programs by what
// runs; the placeholder is the test binary itself. Webhooks answer, so that a request
// that no one answers is noticed. The data, such as accepted clusters, credentials and
// ManifestWorks with what they deployed, is real.
package takeover
