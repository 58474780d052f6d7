package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
)

// maxBody is how much of an answer is read, so that the connection can end well.
const maxBody = 10 << 10

// Target is the target of a probe.
type Target struct {
	// IP of the Pod.
	IP string
	// Ports of the container, for probes that name one.
	Ports []corev1.ContainerPort
	// Client sends HTTP probes; it must not follow redirects.
	Client *http.Client
}

// Supported reports whether probes of this kind are really made.
func Supported(p *corev1.Probe) bool { return p.Exec == nil }

// Check makes one attempt. Nil is success.
func Check(ctx context.Context, p *corev1.Probe, target Target) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds, 1))
	defer cancel()
	switch {
	case p.HTTPGet != nil:
		return checkHTTP(ctx, p.HTTPGet, target)
	case p.TCPSocket != nil:
		return checkTCP(ctx, p.TCPSocket.Host, p.TCPSocket.Port, target)
	case p.GRPC != nil:
		return checkTCP(ctx, "", intstr.FromInt32(p.GRPC.Port), target)
	default:
		return nil
	}
}

func checkHTTP(ctx context.Context, get *corev1.HTTPGetAction, target Target) error {
	if get.Scheme == corev1.URISchemeHTTPS {
		return checkTCP(ctx, get.Host, get.Port, target)
	}
	address, err := address(get.Host, get.Port, target)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	if request.URL, err = request.URL.Parse(get.Path); err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/ocm-local")
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	response, err := target.Client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe answered with status %d: %.200s", response.StatusCode, body)
	}
	return nil
}

func checkTCP(ctx context.Context, host string, port intstr.IntOrString, target Target) error {
	address, err := address(host, port, target)
	if err != nil {
		return err
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

func address(host string, port intstr.IntOrString, target Target) (string, error) {
	if host == "" {
		host = target.IP
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	index := slices.IndexFunc(target.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
	if index < 0 {
		return "", fmt.Errorf("the container has no port named %s", port.StrVal)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(target.Ports[index].ContainerPort))), nil
}

func seconds(n, atLeast int32) time.Duration { return time.Duration(max(n, atLeast)) * time.Second }

// Watcher makes attempts again and again.
type Watcher struct {
	Probe *corev1.Probe
	Clock clock.WithTicker
	// Check makes one attempt.
	Check func(context.Context) error
	// Report receives each lasting result: first when the threshold of successes
	// or failures is reached, then at every change. A failure carries its error.
	Report func(error)
	// Eager attempts every second until the first result, regardless of the period:
	// for readiness, where an early failure changes nothing.
	Eager bool
}

// Watch makes attempts until ctx is done.
func (w Watcher) Watch(ctx context.Context) {
	delay := seconds(w.Probe.InitialDelaySeconds, 0)
	count := counter{failures: max(w.Probe.FailureThreshold, 1), successes: max(w.Probe.SuccessThreshold, 1)}
	for {
		timer := w.Clock.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		err := w.Check(ctx)
		if ctx.Err() != nil {
			return
		}
		if count.add(err) {
			w.Report(err)
		}
		delay = seconds(w.Probe.PeriodSeconds, 1)
		if w.Eager && !count.known {
			delay = min(delay, time.Second)
		}
	}
}

// counter counts equal answers in a row.
type counter struct {
	failures, successes int32
	run                 int32
	last, known         bool
	said                bool
}

// add reports whether an answer has reached its threshold and is news.
func (c *counter) add(err error) bool {
	ok := err == nil
	if ok != c.last {
		c.run = 0
	}
	c.last = ok
	c.run++
	threshold := c.failures
	if ok {
		threshold = c.successes
	}
	if c.run < threshold || c.known && c.said == ok {
		return false
	}
	c.known, c.said = true, ok
	return true
}
