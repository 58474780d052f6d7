// Package csr is the registration driver that gives a cluster's agent, or an
// add-on's, a client certificate through the hub's CertificateSigningRequest
// API. It owns both sides of a cluster's
// request: what an agent asks for, and the rules by which the hub, a person
// with the accept command and the automatic approver alike judge it. Of an
// add-on's request it owns the asking alone; the judge is the add-on's hub side.
//
// Vetting is pure: it reads the request and nothing else, so every caller
// comes to the same verdict. What is not exactly an agent's request is refused.
package csr
