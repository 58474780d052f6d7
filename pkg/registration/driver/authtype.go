package driver

import "fmt"

// AuthType names a registration driver as it is written into the ClusterManager
// and Klusterlet resources and the agents' flags.
type AuthType string

// The drivers.
const (
	CSR     AuthType = "csr"
	AWSIRSA AuthType = "awsirsa"
	// Token is a driver of add-ons alone.
	Token AuthType = "token"
)

// MinClientCertSeconds is the shortest lifetime of a client certificate that a
// cluster's agent asks for. OCM's agents have the same limit.
const MinClientCertSeconds = 3600

// ParseAuthType reads the name of a cluster registration driver. The empty name
// is CSR, OCM's default; clusteradm's spelling "aws-irsa" is AWSIRSA. Any other
// name is an error, also OCM's grpc, which this version does not have.
// See docs/reference/wire-contract.md#aws-spelling.
func ParseAuthType(name string) (AuthType, error) {
	switch name {
	case "", string(CSR):
		return CSR, nil
	case string(AWSIRSA), "aws-irsa":
		return AWSIRSA, nil
	case "grpc":
		return "", fmt.Errorf("the registration driver %s is not available in this version: use %s or %s", name, CSR, AWSIRSA)
	}
	return "", unknown(name, CSR, AWSIRSA)
}

// ParseAddOnAuthType reads the name of the driver of add-ons' kubeClient
// registrations. The empty name is CSR; any other name than csr and token is an error.
func ParseAddOnAuthType(name string) (AuthType, error) {
	switch name {
	case "", string(CSR):
		return CSR, nil
	case string(Token):
		return Token, nil
	}
	return "", unknown(name, CSR, Token)
}

func unknown(name string, one, other AuthType) error {
	return fmt.Errorf("unknown registration driver %q: use one of %s, %s", name, one, other)
}
