package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

// Code is the exit code of a command.
type Code int

// The exit codes; scripts rely on them.
const (
	CodeDone        Code = 0
	CodeFailed      Code = 1
	CodeUsage       Code = 2
	CodeBlocked     Code = 3 // a preflight check or something in the way
	CodeNotFound    Code = 4
	CodeTimeout     Code = 124
	CodeInterrupted Code = 130
)

// Explained is an error together with what the user can do about it.
//
//nolint:errname // it reads as what it is: an error, explained
type Explained struct {
	// Problem is one plain sentence, lower case, without a period.
	Problem string
	// Try is what to do next; empty when there is nothing to say.
	Try string
	// Code is the exit code; zero means the one of Cause, or CodeFailed.
	Code Code
	// Cause is the technical error behind it, if there is one.
	Cause error

	// cause is a Cause that Problem says already.
	cause error
}

// Error implements error.
func (e *Explained) Error() string {
	if e.Cause != nil {
		return e.Problem + ": " + e.Cause.Error()
	}
	return e.Problem
}

// Unwrap returns the cause.
func (e *Explained) Unwrap() error {
	if e.Cause != nil {
		return e.Cause
	}
	return e.cause
}

// Usagef returns an error about how the command was called: exit code 2.
func Usagef(format string, args ...any) error {
	return &Explained{Problem: fmt.Sprintf(format, args...), Code: CodeUsage}
}

// NotFoundf returns an error about something that does not exist: exit code 4.
func NotFoundf(try, format string, args ...any) error {
	return &Explained{Problem: fmt.Sprintf(format, args...), Try: try, Code: CodeNotFound}
}

// Blockedf returns an error about something that stands in the way: exit code 3.
func Blockedf(try, format string, args ...any) error {
	return &Explained{Problem: fmt.Sprintf(format, args...), Try: try, Code: CodeBlocked}
}

// codeOf returns the exit code of a decision that a library made.
func codeOf(kind finding.Kind) Code {
	switch kind {
	case finding.Blocked:
		return CodeBlocked
	case finding.NotFound:
		return CodeNotFound
	case finding.Invalid:
		return CodeUsage
	}
	return CodeFailed
}

// ExitCode maps an error to the code that the process ends with.
func ExitCode(err error) Code {
	if err == nil {
		return CodeDone
	}
	for e := err; e != nil; {
		var explained *Explained
		if !errors.As(e, &explained) {
			break
		}
		if explained.Code != CodeDone {
			return explained.Code
		}
		e = explained.Cause
	}
	switch {
	case errors.Is(err, context.Canceled):
		return CodeInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	case apierrors.IsNotFound(err):
		return CodeNotFound
	}
	return CodeFailed
}

// hinter is an error of a library that knows what a user can do about it.
type hinter interface {
	error
	Hint() string
}

// blocker is an error of a library that says whether something stands in the way.
type blocker interface {
	error
	Blocked() bool
}

// Explain turns an error from a client library into one that shows the user
// what to do. An error that is explained already, and one that nothing more
// can be said about, is returned as it is.
func Explain(err error) error {
	var explained *Explained
	if err == nil || errors.As(err, &explained) {
		return err
	}
	if decided, ok := errors.AsType[*finding.Error](err); ok {
		return &Explained{Problem: err.Error(), Try: decided.Try, Code: codeOf(decided.Kind), cause: err}
	}
	if hinted, ok := errors.AsType[hinter](err); ok {
		explained := &Explained{Problem: hinted.Error(), Try: hinted.Hint(), cause: err}
		if blocker, ok := errors.AsType[blocker](err); ok && blocker.Blocked() && !errors.Is(err, context.DeadlineExceeded) {
			explained.Code = CodeBlocked
		}
		return explained
	}
	for _, translate := range []func(error) *Explained{explainAPI, explainTLS, explainNetwork} {
		if e := translate(err); e != nil {
			return e
		}
	}
	return err
}

// explainLoading explains an error of reading a kubeconfig, which is at path if one
// was named.
func explainLoading(err error, path string) error {
	try := "list the contexts with: " + line("kubectl", Context{Kubeconfig: path}.add("config get-contexts"))
	if errors.Is(err, fs.ErrNotExist) {
		try = "check its path"
	}
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return &Explained{
			Problem: "no kubeconfig was found",
			Try:     "set KUBECONFIG, or name a file with --kubeconfig and a context with --context",
			Code:    CodeUsage,
		}
	}
	return &Explained{
		Problem: "the kubeconfig cannot be used",
		Try:     try,
		Code:    CodeUsage, Cause: err,
	}
}

func explainAPI(err error) *Explained {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return &Explained{
			Problem: "the API server does not accept your credentials",
			Try:     "log in again, or choose another context with --context",
			Cause:   err,
		}
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		return &Explained{
			Problem: "permission is missing: " + status.Status().Message,
			Try:     "ask an administrator of this cluster for the right, or use a context that has it",
		}
	case apimeta.IsNoMatchError(err):
		return &Explained{
			Problem: "this cluster does not serve the API that the command needs",
			Try:     "check that --context names the right cluster",
			Code:    CodeBlocked, Cause: err,
		}
	}
	return nil
}

func explainTLS(err error) *Explained {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return &Explained{
			Problem: "the server's certificate is signed by an unknown authority",
			Try:     "name the authority: in the kubeconfig, or for a hub with --ca-file or --hub-ca-hash",
			Cause:   err,
		}
	case errors.As(err, &hostname):
		return &Explained{
			Problem: "the server's certificate is not valid for the address that was used",
			Try:     "use an address that the certificate names, or issue a certificate for this one",
			Cause:   hostname,
		}
	case errors.As(err, &invalid):
		return &Explained{Problem: "the server's certificate is not valid", Try: "check the clocks and the certificate", Cause: invalid}
	}
	return nil
}

func explainNetwork(err error) *Explained {
	var (
		dns    *net.DNSError
		op     *net.OpError
		urlErr *url.Error
	)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	server := "the server"
	if errors.As(err, &urlErr) {
		if u, parseErr := url.Parse(urlErr.URL); parseErr == nil && u.Host != "" {
			server = strings.TrimSuffix(u.Scheme+"://"+u.Host, "/")
		}
	}
	switch {
	case errors.As(err, &dns):
		return &Explained{
			Problem: fmt.Sprintf("the name %s cannot be resolved", dns.Name),
			Try:     "check the server address, DNS and proxy settings",
		}
	case errors.As(err, &op) && op.Op == "listen":
		return &Explained{
			Problem: fmt.Sprintf("the address %s cannot be listened on", op.Addr),
			Try:     "choose another port, see --help, or stop what listens there",
			Cause:   op.Err,
		}
	case errors.As(err, &op):
		return &Explained{
			Problem: "no connection to " + server,
			Try:     "check that the cluster runs and can be reached from here",
			Cause:   op.Err,
		}
	}
	return nil
}

// HintOf returns what an explained error says to do next, or "".
func HintOf(err error) string {
	if explained, ok := errors.AsType[*Explained](err); ok {
		return explained.Try
	}
	return ""
}
