package aws

import (
	"errors"
	"fmt"
	"net/http"
)

// failure is an error as a service of AWS answers it.
type failure struct {
	status        int
	code, message string
}

// Error implements error.
func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(status int, code, format string, args ...any) error {
	return &failure{status, code, fmt.Sprintf(format, args...)}
}

// invalid is what IAM and STS answer to a parameter that breaks a rule.
func invalid(format string, args ...any) error {
	return fail(http.StatusBadRequest, "ValidationError", format, args...)
}

func missingEntity(format string, args ...any) error {
	return fail(http.StatusNotFound, "NoSuchEntity", format, args...)
}

// asFailure is how err is answered. An error that is no API error is the
// caller's, because the emulator has no others.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return &failure{http.StatusBadRequest, "ValidationError", err.Error()}
}

// eksCodes are the codes of EKS for what IAM and STS call otherwise.
func eksCode(code string) string {
	switch code {
	case "AccessDenied":
		return "AccessDeniedException"
	case "SignatureDoesNotMatch", "IncompleteSignature":
		return "InvalidSignatureException"
	case "InvalidClientTokenId":
		return "UnrecognizedClientException"
	case "ExpiredToken":
		return "ExpiredTokenException"
	case "MissingAuthenticationToken":
		return "MissingAuthenticationTokenException"
	case "Throttling":
		return "ThrottlingException"
	case "InternalFailure":
		return "ServerException"
	case "ValidationError":
		return "InvalidParameterException"
	default:
		return code
	}
}
