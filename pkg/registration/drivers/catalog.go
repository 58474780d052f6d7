package drivers

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	awsirsa "github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// All returns every registration driver of clusters in this version.
func All() driver.Catalog { return driver.Catalog{csr.Setup{}, awsirsa.Setup{}} }
