// Package expiry reports agents that do not renew their certificate in time: it owns the
// condition CredentialOverdue of ManagedClusters. It knows of a certificate what the agent
// reports in ClusterCertificateRotated, which the agent may hold back or make up; no
// decision depends on it. It never touches a certificate.
package expiry
