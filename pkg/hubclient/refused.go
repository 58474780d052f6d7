package hubclient

import (
	"errors"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// interruptible lets informers end while the hub refuses connections. The reflector
// of client-go sleeps for up to a minute, without looking at its context, when a
// connection is refused to the streaming list that it begins with (KEP-3157). For any
// other error it waits with its context. An agent whose hub moved would wait that
// long before it connects to the new one.
type interruptible struct{ next http.RoundTripper }

func newInterruptible(next http.RoundTripper) http.RoundTripper { return interruptible{next} }

// RoundTrip implements http.RoundTripper.
func (i interruptible) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(req)
	if utilnet.IsConnectionRefused(err) && req.URL.Query().Get("sendInitialEvents") == "true" {
		err = errors.New(err.Error()) // The same words, without the type that the reflector looks for.
	}
	return response, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (i interruptible) WrappedRoundTripper() http.RoundTripper { return i.next }
