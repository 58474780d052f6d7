package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/distribution/distribution/v3/registry/auth"
)

// check returns the ServiceAccount whose token is valid for this registry.
type check func(ctx context.Context, token string) (account, error)

// controller implements auth.AccessController for HTTP Basic with tokens for
// passwords. The user name may be anything.
type controller struct{ check check }

// Authorized implements auth.AccessController. Why it refuses is logged; the
// client is only asked to authenticate.
func (c controller) Authorized(r *http.Request, access ...auth.Access) (*auth.Grant, error) {
	_, token, ok := r.BasicAuth()
	if !ok {
		return nil, challenge{errors.New("no password")}
	}
	who, err := c.check(r.Context(), token)
	if err != nil {
		return nil, refuse(err)
	}
	for _, a := range access {
		if !who.may(a) {
			return nil, refuse(fmt.Errorf("%s may not %s %s", who, a.Action, a.Name))
		}
	}
	return &auth.Grant{User: auth.UserInfo{Name: who.String()}}, nil
}

func refuse(err error) challenge {
	log.Print("refused: ", err)
	return challenge{err}
}

// challenge implements auth.Challenge.
type challenge struct{ error }

// SetHeaders implements auth.Challenge.
func (challenge) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
}
