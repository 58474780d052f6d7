package cachereads

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Record is the record of reads. The zero value is empty.
type Record struct {
	mu    sync.Mutex
	scans map[string]int
	gets  map[string]int
}

// NewClient makes the client of a manager whose reads from the cache are recorded.
func (r *Record) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	options.Cache.Reader = reader{Reader: options.Cache.Reader, record: r}
	return client.New(config, options)
}

// Forget begins again.
func (r *Record) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scans, r.gets = nil, nil
}

// Scans counts the reads that scanned all objects of a kind, by the kind of the list:
// they had neither an index nor a namespace nor a limit.
func (r *Record) Scans() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.scans)
}

// Gets returns how often objects were read by their names, by kind, namespace and name.
func (r *Record) Gets() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.gets)
}

// Key is an object's key in Gets.
func Key(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}

type reader struct {
	client.Reader

	record *Record
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.record.count(&r.record.gets, fmt.Sprintf("%T %s", object, key))
	return r.Reader.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.Namespace == "" && o.Limit == 0 && (o.FieldSelector == nil || o.FieldSelector.Empty()) {
		r.record.count(&r.record.scans, fmt.Sprintf("%T", list))
	}
	return r.Reader.List(ctx, list, options...)
}

func (r *Record) count(counts *map[string]int, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[key]++
}
