package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

const (
	readyPoll = 50 * time.Millisecond
	// maxLog is the size at which a log is rotated; one older file is retained.
	maxLog  = 16 << 20
	logTail = 2 << 10
)

// ErrEnded says that a program of the control plane ended while it was waited for.
var ErrEnded = errors.New("the program ended")

// WaitReady returns when the API server says that it is ready. It is an error,
// with the end of the log, when etcd or the API server ends or ctx is done
// before.
func (c *ControlPlane) WaitReady(ctx context.Context) error {
	config, err := c.Access().ConfigFor(AdminUser, AdminGroup)
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("readiness client: %w", err)
	}
	defer connections.CloseIdleConnections()
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, connections)
	if err != nil {
		return fmt.Errorf("readiness client: %w", err)
	}
	ticker := c.clock.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).DoRaw(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server: %w; the end of its log:\n%s", context.Cause(ctx), c.tail(APIServer))
		case <-ended(c.Process(Etcd)):
			return fmt.Errorf("%s: %w; the end of its log:\n%s", Etcd, ErrEnded, c.tail(Etcd))
		case <-ended(c.Process(APIServer)):
			return fmt.Errorf("%s: %w; the end of its log:\n%s", APIServer, ErrEnded, c.tail(APIServer))
		case <-ticker.C():
		}
	}
}

// ended is the end of a process, and never for one that was stopped.
func ended(p *process.Process) <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.Done()
}

// tail is the end of a program's log, for an error.
func (c *ControlPlane) tail(program string) string { return Tail(c.LogFile(program)) }

// Tail is the end of a log, for an error; if it cannot be read, it says why.
func Tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err == nil && info.Size() > logTail {
		if _, err := f.Seek(-logTail, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// openLog opens a log to append to. A long log is set aside first.
func openLog(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxLog {
		err = os.Rename(path, path+".1")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
