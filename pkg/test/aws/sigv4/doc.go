// Package sigv4 verifies requests that are signed with AWS Signature Version 4,
// in the Authorization header or in the query of a presigned URL.
//
// It owns the algorithm as AWS documents it and shares no code with the SDK,
// so that a wrong signature of the SDK's, or of ours, is noticed. It signs
// nothing, knows no credentials, and never changes a request.
//
// Its invariant: it verifies a request as received: method, path, query, signed headers
// and body must be exactly what the caller signed.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
package sigv4
