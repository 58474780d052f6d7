package hub

import (
	"time"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Values describe a hub. A zero field retains the live value, or is the default on a
// new hub.
type Values struct {
	// Workload describes the Pods.
	install.Workload
	// Server is the address under which managed clusters reach the hub.
	Server string
	// Catalog are the registration drivers that there are.
	Catalog driver.Catalog
	// Drivers are the registration drivers of the hub; the order does not matter. What
	// their settings leave out keeps what is live. Nil keeps the live drivers.
	Drivers []driver.HubSettings
	// KeepDrivers keeps the live drivers that Drivers does not name.
	KeepDrivers bool
	// FeatureGates are set in addition to the live ones.
	FeatureGates []operatorv1.FeatureGate
	// Features are the optional parts.
	Features FeatureChoice
	// AutoApproved are users whose clusters are accepted automatically.
	AutoApproved []string
	// BootstrapToken makes a Kubernetes bootstrap token as well.
	BootstrapToken bool
	// TakeOver replaces the hub of OCM; nil refuses to install over one.
	TakeOver *install.TakeOver
	// Cleanup deletes clusters that left and stayed denied. A schedule that is
	// empty removes a live job.
	Cleanup *Cleanup
}

// Cleanup is the opt-in job that deletes clusters that left the hub.
type Cleanup struct {
	// After is how long a cluster that unjoined stays denied before it goes.
	After time.Duration
	// Schedule is a cron expression.
	Schedule string
}
