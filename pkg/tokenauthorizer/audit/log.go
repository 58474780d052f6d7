package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
)

// Config is the configuration of a Log. Zero numbers mean the defaults.
type Config struct {
	// Writer gets the lines, several at a time.
	Writer io.Writer
	// SampleHits has one of that many requests written that a kept token
	// answers, 1,000 by default; 1 writes all, -1 none.
	SampleHits int
	// Buffer is how many lines of issued tokens may wait for the writer, and how
	// many others, 4,096 each by default.
	Buffer int
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Log gets the writer's errors.
	Log logr.Logger
}

// Log is an authorizer.Auditor. The line of an issued token may precede lines that were
// recorded earlier; the time of a line is the time of its request.
type Log struct {
	writer io.Writer
	log    logr.Logger
	sample int64
	hits   atomic.Int64
	// issued are lines about tokens that were issued, others all else: a client that
	// causes denials must not push the former out.
	issued, others chan *Line
	written        prometheus.Counter
	dropped        prometheus.Counter
}

var _ authorizer.Auditor = (*Log)(nil)

// New returns a Log that writes while it runs.
func New(c Config) (*Log, error) {
	if c.Writer == nil {
		return nil, errors.New("an audit log needs a writer")
	}
	if c.SampleHits == 0 {
		c.SampleHits = 1000
	}
	if c.Buffer == 0 {
		c.Buffer = 4096
	}
	total, err := metric.Register(c.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "audit_lines_total", Help: "Lines of the audit log, and those that were dropped because the writer was too slow or failed.",
	}, []string{"result"}))
	return &Log{
		writer: c.Writer, log: c.Log, sample: int64(c.SampleHits),
		issued: make(chan *Line, c.Buffer), others: make(chan *Line, c.Buffer),
		written: total.WithLabelValues("written"), dropped: total.WithLabelValues("dropped"),
	}, err
}

// Record has a decision written, if it is not one of many alike and the writer
// keeps up. It never waits.
func (l *Log) Record(e authorizer.Event) {
	hit := e.Err == nil && e.Decision.Cached
	if hit && (l.sample < 0 || l.hits.Add(1)%l.sample != 0) {
		return
	}
	line := newLine(&e)
	if hit {
		line.Sample = int(l.sample)
	}
	queue := l.others
	if e.Err == nil && !hit {
		queue = l.issued
	}
	select {
	case queue <- line:
	default:
		l.dropped.Inc()
	}
}

// Run writes until ctx ends, and then what was recorded before. Lines that the
// writer does not take are dropped: requests continue without them.
func (l *Log) Run(ctx context.Context) error {
	for {
		select {
		case line := <-l.issued:
			l.write(line)
		case line := <-l.others:
			l.write(line)
		case <-ctx.Done():
			l.write(nil)
			return nil
		}
	}
}

// next returns a line that waits, those of issued tokens first.
func (l *Log) next() (line *Line, ok bool) {
	select {
	case line = <-l.issued:
		return line, true
	default:
	}
	select {
	case line = <-l.others:
		return line, true
	default:
		return nil, false
	}
}

// write writes a line and all that wait behind it.
func (l *Log) write(line *Line) {
	buffer := bufio.NewWriterSize(l.writer, 64<<10)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	var err error
	count := 0.0
	for more := true; more; {
		if line != nil {
			count++
			err = errors.Join(err, encoder.Encode(line))
		}
		line, more = l.next()
	}
	if err = errors.Join(err, buffer.Flush()); err != nil {
		l.dropped.Add(count)
		l.log.Error(err, "The audit log cannot be written.", "lines", count)
		return
	}
	l.written.Add(count)
}
