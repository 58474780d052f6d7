package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
)

// logs knows the logs of a Pod's containers: those of the latest start and of
// the one before it.
type logs struct {
	dir string
	mu  sync.Mutex
	now map[string]started
}

// started is the latest start of a container.
type started struct {
	attempt int32
	ended   <-chan struct{}
}

func (l *logs) path(container string, attempt int32) string {
	return filepath.Join(l.dir, container, strconv.Itoa(int(attempt))+".log")
}

// begin makes room for the log of a start and returns its path.
func (l *logs) begin(container string, attempt int32, ended <-chan struct{}) (string, error) {
	path := l.path(container, attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := os.Remove(l.path(container, attempt-2)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[container] = started{attempt: attempt, ended: ended}
	return path, nil
}

// find returns the log of the latest start of a container, or of the one before it.
func (l *logs) find(ref kubelet.LogRef) (kubelet.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest, ok := l.now[ref.Container]
	if !ok {
		return kubelet.Log{}, fmt.Errorf("container %s has not been started yet", ref.Container)
	}
	if !ref.Previous {
		return kubelet.Log{Path: l.path(ref.Container, latest.attempt), Ended: latest.ended}, nil
	}
	path := l.path(ref.Container, latest.attempt-1)
	if _, err := os.Stat(path); err != nil {
		return kubelet.Log{}, fmt.Errorf("an earlier start of container %s: %w", ref.Container, kubelet.ErrNotFound)
	}
	over := make(chan struct{})
	close(over)
	return kubelet.Log{Path: path, Ended: over}, nil
}

// The most of a log that a kubelet puts into a status
// (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/).
const (
	messageLines = 80
	messageBytes = 2048
)

// terminationMessage returns what the status of a container that failed says: the end of
// its log, if its terminationMessagePolicy asks for that. No container has a file for it.
func (w *worker) terminationMessage(ctx context.Context, spec *corev1.Container, path string) string {
	if spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var tail bytes.Buffer
	if err := logfile.Read(ctx, &tail, path, logfile.Options{Tail: messageLines}, nil); err != nil {
		w.node.config.Log.Info("A log could not be read", "error", err.Error())
	}
	message := tail.Bytes()
	return string(bytes.ToValidUTF8(message[max(0, len(message)-messageBytes):], nil))
}
