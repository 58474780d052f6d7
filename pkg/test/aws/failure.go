package aws

import (
	"cmp"
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

// invalid is the answer of IAM and STS to a parameter that breaks a rule.
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

// eksCode is the code of EKS for what IAM and STS call otherwise.
func eksCode(code string) string {
	return cmp.Or(map[string]string{
		"AccessDenied":               "AccessDeniedException",
		"SignatureDoesNotMatch":      "InvalidSignatureException",
		"IncompleteSignature":        "InvalidSignatureException",
		"InvalidClientTokenId":       "UnrecognizedClientException",
		"ExpiredToken":               "ExpiredTokenException",
		"MissingAuthenticationToken": "MissingAuthenticationTokenException",
		"Throttling":                 "ThrottlingException",
		"InternalFailure":            "ServerException",
		"ValidationError":            "InvalidParameterException",
	}[code], code)
}
