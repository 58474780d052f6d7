package subject

import (
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// claims are a ServiceAccount token's: RFC 7519 §4.1 with those of Kubernetes.
// A time that is absent is zero, a text that is absent is empty.
type claims struct {
	issuer, subject, id         string
	audiences                   []string
	expiry, notBefore, issuedAt time.Time
	nested, flat                bool // Which of the two forms of an account there is.
	account                     Account
	bound                       Binding
	warnAfter                   time.Time
}

// The names of a legacy token's claims about its account.
const (
	flatPrefix    = "kubernetes.io/serviceaccount/"
	flatNamespace = flatPrefix + "namespace"
	flatName      = flatPrefix + "service-account.name"
	flatUID       = flatPrefix + "service-account.uid"
	flatSecret    = flatPrefix + "secret.name"
)

// parseClaims reads a token's payload. Claims that are not ours are skipped,
// and checked for repeated names all the same.
func parseClaims(data []byte) (*claims, error) {
	object, err := jwk.Object(data)
	r := reader{err: err}
	c := &claims{
		issuer: r.text(object, "iss"), subject: r.text(object, "sub"), id: r.text(object, "jti"),
		audiences: r.audiences(object, "aud"),
		expiry:    r.date(object, "exp"), notBefore: r.date(object, "nbf"), issuedAt: r.date(object, "iat"),
	}
	flat := Account{Namespace: r.text(object, flatNamespace), Name: r.text(object, flatName), UID: r.text(object, flatUID)}
	secret := r.text(object, flatSecret)
	for _, name := range []string{flatNamespace, flatName, flatUID, flatSecret} {
		if _, ok := object[name]; ok {
			c.flat = true
		}
	}
	if _, c.nested = object["kubernetes.io"]; c.nested {
		c.readNested(&r, r.object(object, "kubernetes.io"))
	} else if c.flat {
		c.account, c.bound.Secret.Name = flat, secret
	}
	return c, r.err
}

// readNested reads the claim kubernetes.io. Kinds of bound objects that are not
// known here are skipped: Kubernetes may add more.
func (c *claims) readNested(r *reader, object map[string]any) {
	account := r.named(object, "serviceaccount")
	c.account = Account{Namespace: r.text(object, "namespace"), Name: account.Name, UID: account.UID}
	c.bound = Binding{Pod: r.named(object, "pod"), Secret: r.named(object, "secret"), Node: r.named(object, "node")}
	c.warnAfter = r.date(object, "warnafter")
}

// reader reads members of decoded objects. A member that is absent is zero; err is
// about the first that is of another type than it must be.
type reader struct{ err error }

// member returns a member of the type T.
func member[T any](r *reader, object map[string]any, name string) (value T) {
	given, ok := object[name]
	if !ok {
		return value
	}
	value, ok = given.(T)
	if !ok {
		r.fail(name)
	}
	return value
}

func (r *reader) fail(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: a value of another type than it must have", name)
	}
}

func (r *reader) text(object map[string]any, name string) string {
	return member[string](r, object, name)
}

func (r *reader) object(object map[string]any, name string) map[string]any {
	return member[map[string]any](r, object, name)
}

// named reads an object with a name and a UID.
func (r *reader) named(object map[string]any, name string) Object {
	inner := r.object(object, name)
	return Object{Name: r.text(inner, "name"), UID: r.text(inner, "uid")}
}

// audiences reads one string or an array of strings.
func (r *reader) audiences(object map[string]any, name string) []string {
	if one, ok := object[name].(string); ok {
		return []string{one}
	}
	list := member[[]any](r, object, name)
	if len(list) == 0 {
		return nil
	}
	all := make([]string, len(list))
	for i := range list {
		var ok bool
		if all[i], ok = list[i].(string); !ok {
			r.fail(name)
		}
	}
	return all
}

// date reads a NumericDate (RFC 7519 §2), in whole seconds.
func (r *reader) date(object map[string]any, name string) time.Time {
	const lastSecond = 253402300799 // Of the year 9999, the last that RFC 3339 can write.
	if _, ok := object[name]; !ok {
		return time.Time{}
	}
	seconds, ok := object[name].(int64)
	if !ok {
		fraction := member[float64](r, object, name)
		if fraction > lastSecond {
			r.fail(name)
			return time.Time{}
		}
		seconds = int64(fraction)
	}
	if seconds < 0 || seconds > lastSecond {
		r.fail(name)
	}
	return time.Unix(seconds, 0)
}
