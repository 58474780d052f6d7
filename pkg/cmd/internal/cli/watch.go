package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// retryWatch is how long a watch that cannot be made waits for the next try.
const retryWatch = time.Second

// Lister is a command that shows objects of a kind, as "kubectl get" does.
type Lister[T any] struct {
	Env     Env
	Out     *Output
	Kind    Kind[T]
	Columns []Column[T]
	// Objects is the kind of the objects that the items stand for.
	Objects schema.GroupVersionKind
	// None says that there are none.
	None string
	// Draw prints further formats.
	Draw func([]T) error

	selector string
	watch    bool
}

// AddTo registers kubectl's flags.
func (l *Lister[T]) AddTo(cmd *cobra.Command, selector string) {
	flags := cmd.Flags()
	flags.StringVarP(&l.selector, "selector", "l", "", selector)
	flags.BoolVarP(&l.watch, "watch", "w", false, "After listing the objects, watch for changes")
	l.Out.AddTo(cmd)
	flags.BoolVar(&l.Out.showLabels, "show-labels", false, "Show all labels as the last column of a table")
}

// Selector is what the labels of objects must match.
func (l *Lister[T]) Selector() (labels.Selector, error) {
	selector, err := labels.Parse(l.selector)
	if err != nil {
		return nil, Usagef("--selector: %v", err)
	}
	return selector, nil
}

// Key is the namespace and name of an object; the zero Key is that of all.
type Key = client.ObjectKey

// Named restricts a list to the object of a name; an empty one is any.
func Named(name string) client.ListOption {
	if name == "" {
		return client.MatchingFields{}
	}
	return client.MatchingFields{metav1.ObjectNameField: name}
}

// Reading reads the items of an object, or with the zero Key of all that were asked for.
// missing is the error about those that are not there.
type Reading[T any] func(ctx context.Context, key Key) (items []T, missing, err error)

// Run shows the objects in a namespace, all for the empty one, and their changes with
// --watch.
func (l *Lister[T]) Run(ctx context.Context, c client.WithWatch, namespace string, read Reading[T]) error {
	if l.watch {
		return l.follow(ctx, c, namespace, read)
	}
	items, missing, err := read(ctx, Key{})
	if err != nil {
		return err
	}
	return PrintFound(items, missing, l.print)
}

func (l *Lister[T]) print(items []T) error {
	if l.drawn() {
		return l.Draw(items)
	}
	if len(items) == 0 && !l.Out.Machine() {
		l.Env.Say("%s", l.None)
		return nil
	}
	return PrintList(l.Env.Out, l.Out, l.Kind, items, l.Columns)
}

// drawn reports whether the format is one of the command's own.
func (l *Lister[T]) drawn() bool {
	f := l.Out.Format
	return !l.Out.Machine() && f != TableFmt && f != Wide && f != Name
}

// follow prints the items, and each that changes, until ctx ends.
func (l *Lister[T]) follow(ctx context.Context, c client.WithWatch, namespace string, read Reading[T]) error {
	if l.drawn() {
		return Usagef("--watch prints rows: it has no meaning with -o %s", l.Out.Format)
	}
	selector, err := l.Selector()
	if err != nil {
		return err
	}
	f := follower{
		env: l.Env, objects: l.Objects, last: map[Key]document{}, kind: l.Kind.plain(), sortBy: l.Out.sortBy,
		read: func(ctx context.Context, key Key) ([]any, error, error) {
			items, missing, err := read(ctx, key)
			return plainItems(items), missing, err
		},
	}
	f.printer = printer{writer: l.Env.Out, out: l.Out, kind: f.kind, columns: plainColumns(l.Columns)}
	return f.run(ctx, c, []client.ListOption{client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}})
}

// document is an item as it was printed.
type document struct {
	item any
	data []byte
}

// follower prints items when they differ from what it printed last.
type follower struct {
	env     Env
	objects schema.GroupVersionKind
	kind    kind
	sortBy  sortBy
	read    Reading[any]
	printer printer
	last    map[Key]document
}

func (f *follower) run(ctx context.Context, c client.WithWatch, options []client.ListOption) error {
	for {
		// What changes while the items are read is read again.
		list := f.list()
		if err := c.List(ctx, list, append(options, client.Limit(1))...); err != nil {
			return err
		}
		if err := f.changed(ctx, Key{}); err != nil {
			return err
		}
		if err := f.events(ctx, c, list.ResourceVersion, options); err != nil {
			return err
		}
	}
}

// list is a list of the metadata of the objects.
func (f *follower) list() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(f.objects.GroupVersion().WithKind(f.objects.Kind + "List"))
	return list
}

// events prints what changes after a version, and returns when the server has forgotten
// it. A watch that ends is resumed where it ended. client-go's RetryWatcher logs what is
// wrong and has no limit; here the user reads it, and a missing permission is the end.
func (f *follower) events(ctx context.Context, c client.WithWatch, version string, options []client.ListOption) error {
	silent := false
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, f.list(), append(options, &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true},
		})...)
		if err == nil {
			version, err = f.drain(ctx, w, version)
			w.Stop()
			silent = silent && err != nil
		}
		switch {
		case err == nil, ctx.Err() != nil:
		case forgotten(err):
			return nil
		case final(err):
			return err
		case !silent:
			f.env.Warn("the watch is interrupted, and is resumed as soon as possible: %v", err)
			silent = true
		}
		if !pause.For(ctx, f.env.Clock, retryWatch) {
			break
		}
	}
	return ctx.Err()
}

// drain prints what a watch reports, until it ends, and returns the version that it came
// to.
func (f *follower) drain(ctx context.Context, w watch.Interface, version string) (string, error) {
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok {
			return version, fmt.Errorf("the watch reports a %T", event.Object)
		}
		if event.Type != watch.Bookmark {
			if err := f.changed(ctx, client.ObjectKeyFromObject(object)); err != nil {
				return version, err
			}
		}
		version = object.GetResourceVersion()
	}
	return version, nil
}

// changed reads an object, or with the zero Key all, and prints the items that are not as
// they were. One that is gone is printed as it was last.
func (f *follower) changed(ctx context.Context, key Key) error {
	items, missing, err := f.read(ctx, key)
	if err != nil {
		return err
	}
	if missing != nil && key == (Key{}) {
		return missing
	}
	if items, err = f.kind.sorted(items, f.sortBy); err != nil && key == (Key{}) {
		return err
	}
	var differ []any
	for _, item := range items {
		ref := f.kind.ref(item)
		own := Key{Namespace: ref.Namespace, Name: ref.Name}
		data, err := f.kind.item(item)
		if err != nil {
			return err
		}
		if !bytes.Equal(f.last[own].data, data) {
			differ = append(differ, item)
		}
		f.last[own] = document{item, data}
	}
	if gone, known := f.last[key]; known && len(items) == 0 {
		differ = append(differ, gone.item)
		delete(f.last, key)
	}
	return f.printer.each(differ)
}

// forgotten reports whether the server no longer has the changes since a version.
func forgotten(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// final reports whether another try would end as this one did.
func final(err error) bool {
	explained := errors.As(err, new(*Explained))
	return explained || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
