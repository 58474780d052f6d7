package driver

import (
	"fmt"
	"strings"
)

// AuthType names a registration driver as it is written into the ClusterManager
// and Klusterlet resources and the agents' flags.
type AuthType string

// The drivers. GRPC is a valid name without an implementation yet.
const (
	CSR     AuthType = "csr"
	AWSIRSA AuthType = "awsirsa"
	GRPC    AuthType = "grpc"
	// Token is a driver of add-ons alone.
	Token AuthType = "token"
)

// MinClientCertSeconds is the shortest lifetime of a client certificate that a
// cluster's agent asks for. OCM's agents have the same limit.
const MinClientCertSeconds = 3600

// UnknownAuthTypeError says that a driver name is not one of ours.
type UnknownAuthTypeError struct {
	// Value is what was given.
	Value string
	// Valid are the names that would have been taken.
	Valid []AuthType
}

// Error implements error.
func (e *UnknownAuthTypeError) Error() string {
	valid := make([]string, len(e.Valid))
	for i, v := range e.Valid {
		valid[i] = string(v)
	}
	return fmt.Sprintf("unknown registration driver %q: use one of %s", e.Value, strings.Join(valid, ", "))
}

// ParseAuthType reads the name of a cluster registration driver. The empty name
// is CSR, OCM's default; clusteradm's spelling "aws-irsa" is AWSIRSA. Any other
// name is an *UnknownAuthTypeError.
// See docs/reference/wire-contract.md#aws-spelling.
func ParseAuthType(name string) (AuthType, error) {
	switch name {
	case "", string(CSR):
		return CSR, nil
	case string(AWSIRSA), "aws-irsa":
		return AWSIRSA, nil
	case string(GRPC):
		return GRPC, nil
	}
	return "", &UnknownAuthTypeError{Value: name, Valid: []AuthType{CSR, AWSIRSA, GRPC}}
}

// ParseAddOnAuthType reads the name of the driver of add-ons' kubeClient
// registrations. The empty name is CSR; any other name than csr and token is an
// *UnknownAuthTypeError.
func ParseAddOnAuthType(name string) (AuthType, error) {
	switch AuthType(name) {
	case "", CSR:
		return CSR, nil
	case Token:
		return Token, nil
	case AWSIRSA, GRPC:
	}
	return "", &UnknownAuthTypeError{Value: name, Valid: []AuthType{CSR, Token}}
}
