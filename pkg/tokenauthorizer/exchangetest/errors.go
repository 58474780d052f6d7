package exchangetest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
)

// NoAccountError reports a ServiceAccount that the managed cluster does not have.
type NoAccountError struct {
	Host    string
	Account types.NamespacedName
}

// Error implements error.
func (e *NoAccountError) Error() string {
	return fmt.Sprintf("the managed cluster at %s has no ServiceAccount %s", e.Host, e.Account)
}

// DeniedError reports that the chain denied the exchange.
type DeniedError struct{ Reason, Detail string }

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("the exchange is refused: %s: %s", e.Reason, e.Detail)
}

// ImpersonationError reports that the user may not act as the token authorizer.
type ImpersonationError struct{}

// Error implements error.
func (*ImpersonationError) Error() string {
	self := rulestore.Self()
	return fmt.Sprintf("you may not act as ServiceAccount %s/%s of the hub, which exchanges", self.Namespace, self.Name)
}

// AddressError reports that the URL of a token authorizer cannot be used.
type AddressError struct{ Cause error }

// Error implements error.
func (e *AddressError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.Cause }

// AnswerError reports that a running token authorizer denied the exchange.
type AnswerError struct{ Server, Status, Detail string }

// Error implements error.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("the token authorizer at %s answers %s: %s", e.Server, e.Status, e.Detail)
}
