package hub

import "github.com/kubectl-ocm/kubectl-ocm/pkg/install"

// Runner installs and removes a hub in one cluster.
type Runner struct{ *install.Runner }
