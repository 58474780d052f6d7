package cloud

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
)

// Codes of AWS that mean something here.
const (
	codeAccessDenied     = "AccessDenied"
	codeNoEntity         = "NoSuchEntity"
	codeExists           = "EntityAlreadyExists"
	codeNoResource       = "ResourceNotFoundException"
	codeMalformedPolicy  = "MalformedPolicyDocument"
	codeInvalidParameter = "InvalidParameterException"
)

// longest is how much is quoted of what AWS says.
const longest = 300

// Error is the error of a call to AWS.
type Error struct {
	// Action is the call as policies name it, such as iam:CreateRole.
	Action string
	// Resource is the ARN of what the call was about.
	Resource string
	// Code is AWS's word for what is wrong, such as AccessDenied; empty if AWS did
	// not answer.
	Code string

	hint string
	// identity says that the caller has no credential.
	identity bool
	cause    error
}

// Error implements error. The text has nothing in it that differs from one attempt
// to the next.
func (e *Error) Error() string {
	return fmt.Sprintf("the AWS call %s on %s failed%s: %s", e.Action, e.Resource, with(e.Code), e.hint)
}

// with formats an AWS error code for a message, empty if there is none.
func with(code string) string {
	if code == "" {
		return ""
	}
	return " with " + code
}

// Unwrap returns the SDK's error.
func (e *Error) Unwrap() error { return e.cause }

// Provider implements driver.Call.
func (e *Error) Provider() string { return "AWS" }

// Operation implements driver.Call.
func (e *Error) Operation() (action, resource string) { return e.Action, e.Resource }

// Answer implements driver.Call.
func (e *Error) Answer() string { return e.Code }

// Unauthorized implements driver.Call: the caller has no credential, or AWS does not
// allow the call to it.
func (e *Error) Unauthorized() bool { return e.identity || Denied(e) }

// Unauthorized reports whether err is about a call that is Unauthorized.
func Unauthorized(err error) bool {
	call, ok := errors.AsType[*Error](err)
	return ok && call.Unauthorized()
}

// Denied reports whether AWS does not allow a call to its caller.
func Denied(err error) bool {
	return has(err, codeAccessDenied) || has(err, codeAccessDenied+"Exception")
}

// NoPrincipal reports whether IAM refused a trust policy because a role that it
// names does not exist.
func NoPrincipal(err error) bool { return has(err, codeMalformedPolicy) }

// UnknownRole reports whether EKS refused an access entry because it does not see
// the role, as with roles that are only some seconds old.
func UnknownRole(err error) bool { return has(err, codeInvalidParameter) }

// Exists reports whether IAM refused to create what there is already.
func Exists(err error) bool { return has(err, codeExists) }

// has reports whether AWS answered with a code.
func has(err error, code string) bool {
	answer, ok := errors.AsType[smithy.APIError](err)
	return ok && answer.ErrorCode() == code
}

func ignore(err error, code string) error {
	if has(err, code) {
		return nil
	}
	return err
}

// explain wraps the error of an action, nil if there was none.
func explain(action, resource string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Action: action, Resource: resource, cause: err}
	if service, operation := inner(err); service != "" && !strings.EqualFold(service, strings.Split(action, ":")[0]) {
		e.hint, e.identity = identityHint(service, operation, err), true
		return e
	}
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		e.hint = "AWS did not respond; check that the hub controller can reach AWS in the hub's region, and its proxy settings"
		return e
	}
	e.Code, e.hint = answer.ErrorCode(), hint(action, resource, answer)
	return e
}

// inner names the innermost call of an error: the one that AWS, or this machine,
// refused. It is another one than the outermost when no credential was found.
func inner(err error) (service, operation string) {
	for {
		call, ok := errors.AsType[*smithy.OperationError](err)
		if !ok {
			return service, operation
		}
		service, operation, err = call.ServiceID, call.OperationName, call.Err
	}
}

// identityHint says what to do about the hub controller's own identity.
func identityHint(service, operation string, err error) string {
	answer, answered := errors.AsType[smithy.APIError](err)
	if !strings.EqualFold(service, "sts") || !answered {
		return `the hub controller has no AWS credentials; annotate its service account with the role that "kubectl ocm aws prerequisites hub" prints, or use EKS Pod Identity`
	}
	return fmt.Sprintf("AWS denied the hub controller its role with %s of sts:%s; check the role's trust policy, the cluster's OIDC provider and the role in the annotation of the service account",
		answer.ErrorCode(), operation)
}

// denied finds the action in AWS's message: some calls need a second one.
var denied = regexp.MustCompile(`not authorized to perform: ([a-z]+:[A-Za-z]+)`)

// hint says what to do about an answer of AWS. Messages with the name of a session
// or a time in them are left out.
func hint(action, resource string, answer smithy.APIError) string {
	switch answer.ErrorCode() {
	case codeAccessDenied, codeAccessDenied + "Exception":
		if found := denied.FindStringSubmatch(answer.ErrorMessage()); found != nil {
			action = found[1]
		}
		return fmt.Sprintf(`allow %s on %s to the hub controller's role; "kubectl ocm aws prerequisites hub" prints the whole policy`, action, resource)
	case "Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded":
		return "AWS throttles the calls; the hub retries"
	case "LimitExceeded", "ResourceLimitExceededException":
		return "a quota of the account is exceeded; request an increase, or remove unused roles"
	case "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException",
		"SignatureDoesNotMatch", "InvalidSignatureException", "RequestExpired":
		return "AWS does not accept the hub controller's credentials; check its role and the clock of its node"
	case codeNoResource:
		return "it does not exist in EKS; check --hub-cluster-arn, and that the hub controller's role is in the hub's account"
	}
	if answer.ErrorFault() == smithy.FaultServer || strings.HasPrefix(answer.ErrorCode(), "Internal") || strings.HasPrefix(answer.ErrorCode(), "Server") {
		return "AWS has an internal error; the hub retries"
	}
	said := strings.Join(strings.Fields(answer.ErrorMessage()), " ")
	return "AWS says: " + strings.TrimSuffix(excerpt.Of(said, longest), ".")
}
