package driver

import "fmt"

// AuthType names a registration driver as it is written into the ClusterManager
// and Klusterlet resources and the agents' flags.
type AuthType string

// Drivers that several packages know. Those of clusters are in a Catalog.
const (
	// CSR is the driver of a cluster or an add-on that names none.
	CSR AuthType = "csr"
	// Token is a driver of add-ons alone.
	Token AuthType = "token"
)

// MinClientCertSeconds is the shortest lifetime of a client certificate that a
// cluster's agent asks for. OCM's agents have the same limit.
const MinClientCertSeconds = 3600

// ParseAddOnAuthType reads the name of the driver of add-ons' kubeClient
// registrations. The empty name is CSR; any other name than csr and token is an error.
func ParseAddOnAuthType(name string) (AuthType, error) {
	switch name {
	case "", string(CSR):
		return CSR, nil
	case string(Token):
		return Token, nil
	}
	return "", fmt.Errorf("unknown registration driver %q: use one of %s, %s", name, CSR, Token)
}
