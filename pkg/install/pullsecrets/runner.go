package pullsecrets

import "github.com/kubectl-ocm/kubectl-ocm/pkg/install"

// Runner installs and removes the controller in one cluster.
type Runner struct{ *install.Runner }
