// Package policy reads and evaluates AWS IAM policy documents: identity policies
// and the trust policies of roles.
//
// It owns the part of the policy language that registration needs: Action,
// Resource, Principal, wildcards and the condition operator StringEquals. It knows no
// roles and no accounts; a Request contains all facts.
//
// Its invariant: it rejects documents with parts that it does not implement. A policy
// can therefore never allow more here than its author wrote, and a test sees at once
// that it needs more of the language.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html
package policy
