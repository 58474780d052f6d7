// Package csr is the registration driver that gives a cluster's agent, or an
// add-on's, a client certificate through the hub's CertificateSigningRequest
// API. It owns the request that an agent creates, and the rules that the accept command
// and the automatic approver apply to it. An add-on's request is evaluated by
// the add-on's hub controller.
//
// Vetting is a pure function of the request, so that all callers reach the same
// decision. It rejects every request that an agent would not create exactly so.
package csr
