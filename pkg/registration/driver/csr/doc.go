// Package csr is the registration driver that gives a cluster's agent a client
// certificate through the hub's CertificateSigningRequest API (seed 004,
// contract B.4 and B.5). It owns both sides of that request: what an agent
// asks for, and the rules by which the hub, a person with the accept command
// and the automatic approver alike judge it.
//
// Vetting is pure: it reads the request and nothing else, so every caller
// comes to the same verdict. What is not exactly an agent's request is refused.
package csr
