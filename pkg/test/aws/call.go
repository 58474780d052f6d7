package aws

import "slices"

// Call is one request that was answered, in order.
type Call struct {
	// Service and Operation identify the call, such as "iam" and "CreateRole".
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

// Grant is the policies' decision on one action of a call. Some calls require several
// actions, such as iam:CreateRole and iam:TagRole.
type Grant struct {
	Action, Resource string
	// Element is the Action element of the policy that allowed it, "*" for root.
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
