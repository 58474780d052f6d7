package agent

// Phase is a phase of the agent's life cycle.
type Phase string

// The phases.
const (
	// Bootstrapping connects with the bootstrap kubeconfig.
	Bootstrapping Phase = "Bootstrapping"
	// Requested waits for the hub to issue a credential.
	Requested Phase = "Requested"
	// Registered has a credential and waits for the hub to accept the cluster.
	Registered Phase = "Registered"
	// Running renews the lease and reports status.
	Running Phase = "Running"
	// Renewing is Running while a new credential is being obtained.
	Renewing Phase = "Renewing"
	// Rejected has a credential and waits for the hub to accept the cluster again.
	Rejected Phase = "Rejected"
)

// Phases returns every phase.
func Phases() []Phase {
	return []Phase{Bootstrapping, Requested, Registered, Running, Renewing, Rejected}
}

// Condition is a reason (CamelCase) with its message.
type Condition struct {
	Reason  string
	Message string
}

// Report is the reported state of an agent.
type Report struct {
	Phase Phase
	// Bootstrap and Hub are the two halves of HubConnectionDegraded. An empty
	// Hub reason means that the connection works.
	Bootstrap Condition
	Hub       Condition
}

// Degraded reports whether the connection to the hub does not work.
func (r Report) Degraded() bool { return r.Hub.Reason != "" }
