package review

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
)

// lookEvery is the interval of reading a kubeconfig: a mounted Secret gets a new
// credential without an event.
const lookEvery = 10 * time.Second

// file makes the client that a kubeconfig says.
type file struct {
	path  string
	clock clock.PassiveClock

	mu      sync.Mutex
	data    []byte
	looked  time.Time
	current *client
}

// open reads the kubeconfig of settings for the first time.
func open(settings Settings, clock clock.PassiveClock) (*file, error) {
	f := &file{path: settings.KubeconfigFile, clock: clock}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// client returns the client for a call now. A kubeconfig that became unreadable
// leaves the last good one in use.
func (f *file) client() *client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := f.clock.Since(f.looked); age >= lookEvery || age < 0 {
		_ = f.read()
	}
	return f.current
}

func (f *file) read() error {
	f.looked = f.clock.Now()
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the reviews: %w", err)
	}
	if f.current != nil && bytes.Equal(f.data, data) {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.path)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the reviews: %w", err)
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	f.data, f.current = data, c
	return nil
}
