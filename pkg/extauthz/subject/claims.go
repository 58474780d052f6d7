package subject

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/strictjson"
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
	c := &claims{}
	var flat Account
	var secret string
	err := strictjson.Object(data, func(name []byte, r *strictjson.Reader) (err error) {
		switch string(name) {
		case "kubernetes.io":
			c.nested = true
			err = r.Object(c.nestedMember)
		case flatNamespace:
			c.flat = true
			flat.Namespace, err = r.String()
		case flatName:
			c.flat = true
			flat.Name, err = r.String()
		case flatUID:
			c.flat = true
			flat.UID, err = r.String()
		case flatSecret:
			c.flat = true
			secret, err = r.String()
		default:
			return c.registered(name, r)
		}
		return named(name, err)
	})
	if c.flat && !c.nested {
		c.account, c.bound.Secret.Name = flat, secret
	}
	return c, err
}

// registered reads a claim of RFC 7519 §4.1, or skips one that is not ours.
func (c *claims) registered(name []byte, r *strictjson.Reader) (err error) {
	switch string(name) {
	case "iss":
		c.issuer, err = r.String()
	case "sub":
		c.subject, err = r.String()
	case "jti":
		c.id, err = r.String()
	case "aud":
		c.audiences, err = audiences(r)
	case "exp":
		c.expiry, err = date(r)
	case "nbf":
		c.notBefore, err = date(r)
	case "iat":
		c.issuedAt, err = date(r)
	default:
		err = r.Skip()
	}
	return named(name, err)
}

// nestedMember reads a member of the claim kubernetes.io. Kinds of bound objects
// that are not known here are skipped: Kubernetes may add more.
func (c *claims) nestedMember(name []byte, r *strictjson.Reader) (err error) {
	var account Object
	switch string(name) {
	case "namespace":
		c.account.Namespace, err = r.String()
	case "serviceaccount":
		account, err = object(r)
		c.account.Name, c.account.UID = account.Name, account.UID
	case "pod":
		c.bound.Pod, err = object(r)
	case "secret":
		c.bound.Secret, err = object(r)
	case "node":
		c.bound.Node, err = object(r)
	case "warnafter":
		c.warnAfter, err = date(r)
	default:
		err = r.Skip()
	}
	return named(name, err)
}

func object(r *strictjson.Reader) (Object, error) {
	var o Object
	err := r.Object(func(name []byte, r *strictjson.Reader) (err error) {
		switch string(name) {
		case "name":
			o.Name, err = r.String()
		case "uid":
			o.UID, err = r.String()
		default:
			err = r.Skip()
		}
		return err
	})
	return o, err
}

// audiences reads "aud", which is one string or an array of strings.
func audiences(r *strictjson.Reader) ([]string, error) {
	if r.Kind() != '[' {
		one, err := r.String()
		return []string{one}, err
	}
	var all []string
	err := r.Array(func(r *strictjson.Reader) error {
		one, err := r.String()
		all = append(all, one)
		return err
	})
	return slices.Clip(all), err
}

// date reads a NumericDate (RFC 7519 §2), in whole seconds.
func date(r *strictjson.Reader) (time.Time, error) {
	const lastSecond = 253402300799 // Of the year 9999, the last that RFC 3339 can write.
	seconds, err := r.Number()
	if err != nil {
		return time.Time{}, err
	}
	if seconds < 0 || seconds > lastSecond {
		return time.Time{}, fmt.Errorf("%v seconds is no date", seconds)
	}
	return time.Unix(int64(seconds), 0), nil
}

// named says which claim err is about.
func named(name []byte, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
