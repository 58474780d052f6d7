package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// registry is where the API server keeps its objects.
const registry = "/registry/"

// maxOps is less than the 128 operations that etcd takes in one transaction.
const maxOps = 100

// restless are the keys that the control plane itself writes all the time. A reset
// removes events, but does not wait until they stop.
var restless = []string{registry + "leases/kube-system/", registry + "masterleases/", eventKeys} //nolint:gochecknoglobals // a constant

const eventKeys = registry + "events/"

// store is the etcd of a control plane, by the JSON gateway that etcd itself serves
// (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/). Writing there rather than
// through the API server passes finalizers by and takes a tenth of the time; the API
// server follows by its watches.
type store struct{ http *http.Client }

func newStore(dir string) store {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, localplane.EtcdSocket))
	}
	return store{http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// entry is an object in the store. Value is nil if only revisions were requested.
type entry struct {
	revision int64
	value    []byte
}

// read returns the entries of the registry by their keys.
func (s store) read(ctx context.Context, values bool) (map[string]entry, error) {
	end := []byte(registry)
	end[len(end)-1]++
	query := struct {
		Key      []byte `json:"key"`
		RangeEnd []byte `json:"range_end"`
		KeysOnly bool   `json:"keys_only"`
	}{[]byte(registry), end, !values}
	var answer struct {
		KVs []struct {
			Key      []byte `json:"key"`
			Value    []byte `json:"value"`
			Revision int64  `json:"mod_revision,string"`
		} `json:"kvs"`
	}
	if err := s.call(ctx, "range", query, &answer); err != nil {
		return nil, err
	}
	entries := make(map[string]entry, len(answer.KVs))
	for _, kv := range answer.KVs {
		entries[string(kv.Key)] = entry{kv.Revision, kv.Value}
	}
	return entries, nil
}

type operation struct {
	Put    *put    `json:"request_put,omitempty"`
	Delete *remove `json:"request_delete_range,omitempty"`
}

type put struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

type remove struct {
	Key []byte `json:"key"`
}

// restore makes the entries of keys those of baseline, and notes their new revisions there.
func (s store) restore(ctx context.Context, baseline map[string]entry, keys []string) error {
	for some := range slices.Chunk(keys, maxOps) {
		operations := make([]operation, len(some))
		for i, key := range some {
			if e, ok := baseline[key]; ok {
				operations[i].Put = &put{[]byte(key), e.value}
			} else {
				operations[i].Delete = &remove{[]byte(key)}
			}
		}
		var answer struct {
			Header struct {
				Revision int64 `json:"revision,string"`
			} `json:"header"`
			Succeeded bool `json:"succeeded"`
		}
		if err := s.call(ctx, "txn", map[string]any{"success": operations}, &answer); err != nil {
			return err
		}
		if !answer.Succeeded {
			return errors.New("etcd did not apply the transaction")
		}
		for _, key := range some {
			if e, ok := baseline[key]; ok {
				baseline[key] = entry{answer.Header.Revision, e.value}
			}
		}
	}
	return nil
}

// differences are the keys of what was added, changed or removed since baseline, in order.
func differences(baseline, now map[string]entry) []string {
	changed := map[string]bool{}
	for key, e := range now {
		if before, ok := baseline[key]; !ok || before.revision != e.revision {
			changed[key] = true
		}
	}
	for key := range baseline {
		if _, ok := now[key]; !ok {
			changed[key] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// steady leaves out what the control plane writes all the time.
func steady(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		return slices.ContainsFunc(restless, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

func (s store) call(ctx context.Context, method string, query, answer any) error {
	body, err := json.Marshal(query)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", response.Status, data)
	}
	return json.Unmarshal(data, answer)
}

func (s store) close() { s.http.CloseIdleConnections() }
