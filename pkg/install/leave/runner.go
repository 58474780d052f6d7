package leave

import "github.com/kubectl-ocm/kubectl-ocm/pkg/install"

// Runner removes the agent of one managed cluster.
type Runner struct{ *install.Runner }
