package process

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// ErrClosed is the error of starting a process after Close.
var ErrClosed = errors.New("the process group is closed")

// Group starts processes from one operating system thread.
type Group struct {
	requests chan request
	closing  chan struct{}
	done     chan struct{}
	once     sync.Once
}

type request struct {
	start  func() error
	answer chan error
}

// NewGroup returns a Group. Close it after its processes have ended.
func NewGroup() *Group {
	g := &Group{requests: make(chan request), closing: make(chan struct{}), done: make(chan struct{})}
	go g.loop()
	return g
}

// loop owns the thread. It is never unlocked: when the goroutine ends, so does
// the thread, and the kernel kills what is left of its children.
//
// The main thread of a program never ends before the program: a loop that finds
// itself there keeps it busy and leaves the work to another.
func (g *Group) loop() {
	runtime.LockOSThread()
	if syscall.Gettid() == os.Getpid() {
		go g.loop()
		<-g.done
		runtime.UnlockOSThread()
		return
	}
	defer close(g.done)
	for {
		select {
		case r := <-g.requests:
			r.answer <- r.start()
		case <-g.closing:
			return
		}
	}
}

// do runs start on the thread of the Group.
func (g *Group) do(start func() error) error {
	r := request{start: start, answer: make(chan error, 1)}
	select {
	case g.requests <- r:
		return <-r.answer
	case <-g.closing:
		return ErrClosed
	}
}

// Close ends the thread, and with it every process of the Group that still
// runs. It may be called more than once.
func (g *Group) Close() {
	g.once.Do(func() { close(g.closing) })
	<-g.done
}
