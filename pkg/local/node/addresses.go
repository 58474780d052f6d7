package node

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
)

// Ranges of loopback addresses are 127.x.y.0/24 with x from firstX up: what is
// below is used by resolvers and the like.
const (
	firstX     = 64
	countX     = 192 - firstX
	countY     = 256
	nodeHost   = 1
	firstPod   = 2
	lastPod    = 254
	maxAttempt = 256
)

// ErrNoAddress says that a cluster has no loopback address left.
var ErrNoAddress = errors.New("no loopback address is free")

// Addresses is a cluster's range of loopback addresses. It is reserved for as
// long as the node listens on its first address, against every other user of
// the machine.
type Addresses struct {
	x, y byte
	// Listener is where the node serves; closing it gives the range back.
	Listener net.Listener

	mu    sync.Mutex
	taken [lastPod + 1]types.UID
	next  int
}

// ReserveAddresses takes a free range. Clusters with different seeds try
// different ones first, so that a cluster mostly keeps its range.
func ReserveAddresses(ctx context.Context, seed string) (*Addresses, error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(seed))
	start := hash.Sum32()
	for i := range uint32(maxAttempt) {
		n := (start + i) % (countX * countY)
		a := &Addresses{x: byte(firstX + n/countY), y: byte(n % countY), next: firstPod}
		address := net.JoinHostPort(a.NodeIP(), strconv.Itoa(kubelet.Port))
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listen for the API server: %w", err)
		}
		a.Listener = listener
		return a, nil
	}
	return nil, fmt.Errorf("%w: %d ranges below 127.0.0.0/8 are in use on port %d", ErrNoAddress, maxAttempt, kubelet.Port)
}

// NodeIP is the address of the node.
func (a *Addresses) NodeIP() string { return a.ip(nodeHost) }

func (a *Addresses) ip(host int) string { return fmt.Sprintf("127.%d.%d.%d", a.x, a.y, host) }

// take gives a Pod an address. An address that was given back is used again as
// late as possible.
func (a *Addresses) take(pod types.UID) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range lastPod - firstPod + 1 {
		host := a.next
		if a.next++; a.next > lastPod {
			a.next = firstPod
		}
		if a.taken[host] == "" {
			a.taken[host] = pod
			return a.ip(host), nil
		}
	}
	return "", fmt.Errorf("%w for another Pod", ErrNoAddress)
}

// release gives back the address of a Pod.
func (a *Addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for host, owner := range a.taken {
		if owner == pod {
			a.taken[host] = ""
		}
	}
}
