package aws

import "slices"

// Call is one request that was answered, in order.
type Call struct {
	// Service and Operation are what was called, such as "iam" and "CreateRole".
	Service, Operation string
	// Host is where.
	Host string
	// Caller is the ARN of the signer; empty without a valid signature.
	Caller string
	// Presigned says that the signature was in the URL.
	Presigned bool
	// Grants are the decisions that it took. A call without any needs none.
	Grants []Grant
	// Code is the code of the error that was answered; empty after success.
	Code string
}

// Grant is what policies say to one action of a call. Some calls take several
// actions, such as iam:CreateRole and iam:TagRole.
type Grant struct {
	Action, Resource string
	// Element is what the policy that allowed it has under Action, "*" for root.
	Element string
	// Trust says that the trust policy of a role decided, not the caller's.
	Trust bool
	// Allowed is the decision.
	Allowed bool
}

// Calls lists the calls so far, those that failed included.
func (c *Cloud) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// ForgetCalls empties the record.
func (c *Cloud) ForgetCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}
