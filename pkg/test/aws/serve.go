package aws

import (
	"maps"
	"net/http"
)

// ServeHTTP answers one request, one after the other.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := newRequest(r)
	if q == nil {
		http.Error(w, err.Error(), asFailure(err).status)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The SDK corrects its clock by this header when a response reports it as wrong.
	w.Header().Set("Date", c.signatureTime().UTC().Format(http.TimeFormat))
	fault := c.faultFor(q.operation)
	if fault != nil && fault.Kind == Silent {
		c.mu.Unlock()
		<-r.Context().Done() // The client left.
		c.mu.Lock()
		panic(http.ErrAbortHandler)
	}
	var result any
	if err == nil {
		result, err = c.answer(q, fault)
	}
	if err != nil {
		q.call.Code = q.code(asFailure(err))
	}
	c.calls = append(c.calls, *q.call)
	c.answered++
	switch {
	case fault != nil && fault.Kind == Cut:
		panic(http.ErrAbortHandler)
	case err != nil:
		q.writeFailure(w, asFailure(err))
	default:
		q.writeResult(w, result)
	}
}

// answer does what a request asks for.
func (c *Cloud) answer(q *request, fault *Fault) (any, error) {
	if err := fault.before(); err != nil {
		return nil, err
	}
	do := c.operations[q.service+":"+q.operation]
	if do == nil {
		return nil, fail(http.StatusBadRequest, "InvalidAction", "the operation %q of %s is not implemented here", q.operation, q.service)
	}
	if !anonymous(q.operation) {
		if err := c.authenticate(q); err != nil {
			return nil, err
		}
	}
	result, err := do(q)
	if err == nil {
		err = fault.after()
	}
	return result, err
}

// allOperations returns the operations of all services.
func (c *Cloud) allOperations() map[string]operation {
	all := map[string]operation{}
	for service, operations := range map[string]map[string]operation{
		"sts": c.stsOperations(), "iam": c.iamOperations(), "eks": c.eksOperations(),
	} {
		for name, do := range operations {
			all[service+":"+name] = do
		}
	}
	return all
}

// merged is the union of condition keys.
func merged(all ...map[string][]string) map[string][]string {
	keys := map[string][]string{}
	for _, one := range all {
		maps.Copy(keys, one)
	}
	return keys
}
