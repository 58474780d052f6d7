package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os/exec"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

const (
	// cpuTime is how much CPU time the rules of one object may take, and memory how many
	// bytes more than a process has that has done nothing.
	cpuTime = time.Second
	memory  = 256 << 20
	// patience is for a process that does nothing, which the limits do not end.
	patience = time.Minute
	// idle is how many processes are kept.
	idle = 2
	// rejection is how long rules that exceeded the limits are not evaluated, and rejections
	// how many of those are remembered.
	rejection  = 10 * time.Minute
	rejections = 1024
)

// Processes evaluates rules. It is safe for concurrent use.
type Processes struct {
	command func(context.Context) *exec.Cmd
	clock   clock.PassiveClock
	seed    maphash.Seed
	// rejected has the end of each rejection.
	rejected *lru.Cache

	mu     sync.Mutex
	idle   []*process
	closed bool
}

// New returns Processes that command starts: a program that calls Serve with its standard
// input and output. None is started before the first rule, which most agents do not have.
func New(command func(context.Context) *exec.Cmd, clk clock.PassiveClock) *Processes {
	return &Processes{command: command, clock: clk, seed: maphash.MakeSeed(), rejected: lru.New(rejections)}
}

// Close ends the processes. Evaluate starts none after it.
func (p *Processes) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, one := range p.idle {
		_ = one.end()
	}
	p.idle = nil
}

// Evaluate implements status.Evaluator. Rules that exceed the limits set their conditions
// to False, and are not evaluated again for some time.
func (p *Processes) Evaluate(ctx context.Context, object *unstructured.Unstructured, rules []workv1.ConditionRule) []metav1.Condition {
	if len(rules) == 0 {
		return nil
	}
	key := p.digest(rules)
	if end, ok := p.rejected.Get(key); ok && end.(time.Time).After(p.clock.Now()) { //nolint:errcheck,forcetypeassert // Nothing else is in it.
		return status.TooExpensive(rules, tooExpensive())
	}
	conditions, err := p.evaluate(ctx, request{object, rules})
	switch {
	case errors.Is(err, errLimit):
		p.rejected.Add(key, p.clock.Now().Add(rejection))
		return status.TooExpensive(rules, tooExpensive())
	case err != nil:
		return status.Unevaluated(rules, err)
	}
	return conditions
}

// evaluate asks an idle process, and a new one if there is none or it has ended.
func (p *Processes) evaluate(ctx context.Context, r request) ([]metav1.Condition, error) {
	if one := p.take(); one != nil {
		if conditions, err := p.ask(ctx, one, r); err == nil || ctx.Err() != nil {
			return conditions, err
		}
	}
	one, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, one, r)
}

// ask asks a process, and keeps or ends it.
func (p *Processes) ask(ctx context.Context, one *process, r request) ([]metav1.Condition, error) {
	conditions, err := one.ask(ctx, r)
	if err != nil {
		if ended := one.end(); ctx.Err() == nil {
			err = ended
		}
		return nil, err
	}
	p.give(one)
	return conditions, nil
}

func tooExpensive() string {
	return fmt.Sprintf("the rules of this manifest need more than %v of CPU time or %d MiB of memory; simplify them", cpuTime, memory>>20)
}

// digest identifies rules. An object that changes all the time must not have them
// evaluated as often.
func (p *Processes) digest(rules []workv1.ConditionRule) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	_ = json.NewEncoder(&h).Encode(rules) // A hash never fails to write.
	return h.Sum64()
}

// take returns an idle process, or nil.
func (p *Processes) take() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	one := p.idle[last]
	p.idle = p.idle[:last]
	return one
}

// give takes a process back.
func (p *Processes) give(one *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == idle {
		_ = one.end()
		return
	}
	p.idle = append(p.idle, one)
}

// process is one evaluating process.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	// late is true if it did not answer in time.
	late bool
}

// failed is the exit code of a process that ends by itself, without having crashed. One that
// gets no more memory, or has used up its CPU time, ends with a larger one.
const failed = 1

// errLimit is why a process has ended that needed too much.
var errLimit = errors.New("a limit was exceeded")

// errClosed is why no process is started.
var errClosed = errors.New("the agent stops")

func (p *Processes) start(ctx context.Context) (*process, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	cmd := p.command(context.WithoutCancel(ctx)) // It outlives the request.
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process for rules: %w", err)
	}
	return &process{cmd: cmd, in: in, answers: json.NewDecoder(out)}, nil
}

// ask returns what rules set. After an error the process must be ended.
func (o *process) ask(ctx context.Context, r request) ([]metav1.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = o.cmd.Process.Kill() })()
	defer func() { o.late = errors.Is(ctx.Err(), context.DeadlineExceeded) }()
	if err := json.NewEncoder(o.in).Encode(r); err != nil {
		return nil, err
	}
	var a answer
	if err := o.answers.Decode(&a); err != nil {
		return nil, err
	}
	return a.Conditions, nil
}

// end ends the process, and returns errLimit if it had ended because of its limits.
func (o *process) end() error {
	_ = o.cmd.Process.Kill() // It may have ended.
	err := o.cmd.Wait()
	if state := o.cmd.ProcessState; state != nil && state.ExitCode() > failed || o.late {
		return errLimit
	}
	return fmt.Errorf("the process for rules ended: %w", err)
}
