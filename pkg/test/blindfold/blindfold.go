package blindfold

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// Blindfold keeps watches silent until it is lifted.
type Blindfold struct {
	hides  func(watch *http.Request) bool
	lifted chan struct{}
}

// New returns a blindfold for the watches that hides chooses.
func New(hides func(watch *http.Request) bool) *Blindfold {
	return &Blindfold{hides: hides, lifted: make(chan struct{})}
}

// Lift has the watches send what they have hidden, and everything from then on.
func (b *Blindfold) Lift() { close(b.lifted) }

// Wrap puts the blindfold on a client, for rest.Config.Wrap.
func (b *Blindfold) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{Blindfold: b, next: next}
}

type transport struct {
	*Blindfold

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	query := req.URL.Query()
	if err != nil || query.Get("watch") == "" || !t.hides(req) {
		return resp, err
	}
	var framer runtime.Framer = json.Framer
	if strings.Contains(resp.Header.Get("Content-Type"), "protobuf") {
		framer = protobuf.LengthDelimitedFramer
	}
	resp.Body = &late{
		ReadCloser: resp.Body, lifted: t.lifted, ended: req.Context().Done(), framer: framer,
		listed: query.Get("sendInitialEvents") != "true",
	}
	return resp, nil
}

// late is the content of a watch, after the list that it may begin with, once the
// blindfold is lifted.
type late struct {
	io.ReadCloser

	lifted, ended <-chan struct{}
	begun         []byte
	framer        runtime.Framer
	listed        bool
}

// whole reports whether begun ends with an event: the client waits for the rest of one.
func (l *late) whole() bool {
	events, buffer := l.framer.NewFrameReader(io.NopCloser(bytes.NewReader(l.begun))), make([]byte, len(l.begun))
	for {
		if _, err := events.Read(buffer); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// Read implements io.Reader.
func (l *late) Read(p []byte) (int, error) {
	if l.listed {
		select {
		case <-l.lifted:
		case <-l.ended:
		}
		return l.ReadCloser.Read(p)
	}
	n, err := l.ReadCloser.Read(p)
	l.begun = append(l.begun, p[:n]...)
	l.listed = bytes.Contains(l.begun, []byte(metav1.InitialEventsAnnotationKey)) && l.whole()
	return n, err
}
