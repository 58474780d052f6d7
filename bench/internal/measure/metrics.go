package measure

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// settling is how long a process may take until it has looked at everything.
const settling = 15 * time.Minute

// AwaitSettled waits until a controller of the process has looked at so many objects
// and no controller has anything left to do.
func (p *Process) AwaitSettled(b *testing.B, controller string, objects int) {
	b.Helper()
	var now clock.RealClock
	for limit := now.Now().Add(settling); ; now.Sleep(200 * time.Millisecond) {
		metrics := p.metrics(b)
		looked := Sum(metrics, "controller_runtime_reconcile_total", `controller="`+controller+`"`)
		left := Sum(metrics, "workqueue_depth", "") + Sum(metrics, "controller_runtime_active_workers", "")
		if looked >= float64(objects) && left == 0 {
			return
		}
		if now.Now().After(limit) {
			b.Fatalf("%s looked at %v of %d objects, %v are left", controller, looked, objects, left)
		}
	}
}

// metrics is what the process says of itself, nothing before it serves.
func (p *Process) metrics(b *testing.B) []byte {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1:"+p.metricsPort+"/metrics", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	return data
}

// Sum adds up a metric of a name with a label in the text format of Prometheus, all of
// the name where the label is empty.
func Sum(metrics []byte, name, label string) float64 {
	var sum float64
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if own, labels, _ := strings.Cut(series, "{"); own != name || !strings.Contains(labels, label) {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			sum += n
		}
	}
	return sum
}
