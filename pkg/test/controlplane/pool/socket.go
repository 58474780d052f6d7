package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// Grant describes a control plane to a process that leases it from another.
type Grant struct {
	// Dir is the state directory, with the keys of the cluster's authority.
	Dir string `json:"dir"`
	// URL is the address of the API server.
	URL string `json:"url"`
	// Error says why there is none.
	Error string `json:"error,omitempty"`
}

// Serve leases control planes of p to whom connects to the listener, until that is
// closed. A lease ends with its connection.
func Serve(listener net.Listener, p *Pool) error {
	var leases sync.WaitGroup
	defer leases.Wait()
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		leases.Go(func() {
			if err := serve(connection, p); err != nil {
				p.report(err)
			}
		})
	}
}

func serve(connection net.Conn, p *Pool) error {
	// Its end says that the lease is over: who leases next does not start another one.
	defer func() { _ = connection.Close() }()
	var config localplane.Config
	if err := json.NewDecoder(connection).Decode(&config); err != nil {
		return fmt.Errorf("what control plane is wanted: %w", err)
	}
	plane, err := p.Lease(config)
	if err != nil {
		return json.NewEncoder(connection).Encode(Grant{Error: err.Error()})
	}
	if err := json.NewEncoder(connection).Encode(Grant{Dir: plane.Dir, URL: plane.URL()}); err == nil {
		// The holder sends nothing: this ends when it closes its side, or is killed.
		_, _ = io.Copy(io.Discard, connection)
	}
	p.Release(plane)
	return nil
}

// Dial leases a control plane from the pool that serves at a Unix socket, until release is called.
func Dial(ctx context.Context, socket string, config localplane.Config) (grant Grant, release func() error, err error) {
	connection, err := (&net.Dialer{}).DialUnix(ctx, "unix", nil, &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		return Grant{}, nil, fmt.Errorf("the pool of control planes: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	if err = json.NewEncoder(connection).Encode(config); err == nil {
		err = json.NewDecoder(connection).Decode(&grant)
	}
	if err == nil && grant.Error != "" {
		err = errors.New(grant.Error)
	}
	if err != nil {
		return Grant{}, nil, errors.Join(fmt.Errorf("the pool of control planes: %w", err), connection.Close())
	}
	return grant, func() error {
		err := connection.CloseWrite()
		_, ended := io.Copy(io.Discard, connection)
		return errors.Join(err, ended, connection.Close())
	}, nil
}
