// Package csr is the registration driver that gives a cluster's agent, or an
// add-on's, a client certificate through the hub's CertificateSigningRequest
// API. It owns the request that an agent creates, and the rules by which the accept
// command and the automatic approver evaluate it. An add-on's request is evaluated by
// the add-on's hub controller.
//
// Vetting is a pure function of the request, so that all callers come to the same
// decision. It rejects a request that is not exactly that of an agent.
package csr
