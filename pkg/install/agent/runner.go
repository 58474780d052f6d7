package agent

import "github.com/kubectl-ocm/kubectl-ocm/pkg/install"

// Runner installs the agent of one managed cluster, and looks at it.
type Runner struct{ *install.Runner }
