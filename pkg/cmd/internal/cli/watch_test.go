package cli_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// turn is one watch: what it reports before it closes, or why it is not made.
type turn struct {
	events []watch.Event
	err    error
	// before runs when the watch is asked for.
	before func()
}

// hub is an API server whose watches close.
type hub struct {
	client.WithWatch

	version  string
	turns    []turn
	versions []string
	end      context.CancelFunc
}

func (h *hub) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion(h.version)
	return nil
}

func (h *hub) Watch(ctx context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	h.versions = append(h.versions, (&client.ListOptions{}).ApplyOptions(options).Raw.ResourceVersion)
	if len(h.turns) == 0 {
		h.end()
		return nil, ctx.Err()
	}
	now := h.turns[0]
	h.turns = h.turns[1:]
	if now.before != nil {
		now.before()
	}
	w := watch.NewFakeWithChanSize(len(now.events), false)
	for _, event := range now.events {
		w.Action(event.Type, event.Object)
	}
	w.Stop()
	return w, now.err
}

func event(kind watch.EventType, name, version string) watch.Event {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
	return watch.Event{Type: kind, Object: object}
}

// TestWatchOutlivesItsConnection: a watch that the server closes, or that it has
// forgotten, goes on without a row that is lost or repeated, and ends with its context.
func TestWatchOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, outlives)
}

func outlives(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	items := []item{{"a", "1"}, {"b", "1"}}
	expired := watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("too old").ErrStatus}
	h := &hub{version: "10", end: cancel}
	h.turns = []turn{
		{before: func() { items[0].Note = "2" }, events: []watch.Event{event(watch.Modified, "a", "11"), event(watch.Modified, "b", "12"), event(watch.Bookmark, "", "20")}},
		{err: errors.New("connection refused")},
		{before: func() { items = items[1:] }, events: []watch.Event{event(watch.Deleted, "a", "21")}},
		{before: func() { h.version = "40"; items = append(items, item{"c-is-longer", "1"}) }, events: []watch.Event{expired}},
	}
	var out, talk bytes.Buffer
	l := cli.Lister[item]{
		Env: cli.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &talk}, Clock: clock.RealClock{}},
		Out: cli.ListOutput(), Kind: itemKind, Objects: schema.GroupVersionKind{Kind: "Item"},
		Columns: []cli.Column[item]{
			{Header: "name", Value: func(i item) string { return i.Name }}, {Header: "note", Value: func(i item) string { return i.Note }},
		},
	}
	cmd := &cobra.Command{}
	l.AddTo(cmd, "labels")
	if err := cmd.Flags().Set("watch", "true"); err != nil {
		t.Fatal(err)
	}
	err := l.Run(ctx, h, "", func(_ context.Context, key cli.Key) ([]item, error, error) {
		return slices.DeleteFunc(slices.Clone(items), func(i item) bool { return key.Name != "" && key.Name != i.Name }), nil, nil
	})
	if !errors.Is(err, context.Canceled) || cli.ExitCode(err) != cli.CodeInterrupted {
		t.Errorf("ended with %v", err)
	}
	const want = "NAME  NOTE\na     1\nb     1\na     2\na     2\nc-is-longer  1\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if want := []string{"10", "20", "20", "21", "40"}; !slices.Equal(h.versions, want) {
		t.Errorf("watched from %v, want %v", h.versions, want)
	}
	if got := talk.String(); got != "Warning: the watch is interrupted, and is resumed as soon as possible: connection refused\n" {
		t.Errorf("said %q", got)
	}
}
