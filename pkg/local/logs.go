package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
)

// Supervisor is the component whose log is the supervisor's own.
const Supervisor = "supervisor"

// Components are the programs of a cluster whose logs can be read.
func Components() []string {
	return []string{
		Supervisor, controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler,
	}
}

// LogRequest says which log is wanted: that of a Pod, or that of a component.
type LogRequest struct {
	Dir, Cluster string
	// Pod is NAME or NAMESPACE/NAME; NAME may be the beginning of a Pod's name
	// if only one begins so.
	Pod string
	// Component is one of Components.
	Component string
	// Options are the options of the Pod's log; for a component, only TailLines
	// applies.
	Options corev1.PodLogOptions
}

// Logs writes a log to out.
func Logs(ctx context.Context, request LogRequest, out io.Writer) error {
	l := layout(request.Dir)
	if _, err := l.existing(request.Cluster); err != nil {
		return err
	}
	cluster := l.cluster(request.Cluster)
	if request.Component != "" {
		return cluster.componentLog(request.Component, request.Options.TailLines, out)
	}
	return cluster.podLog(ctx, request, out)
}

// componentLog does not need the cluster to run. A tail of nil is all of it.
func (l clusterLayout) componentLog(component string, tail *int64, out io.Writer) error {
	if !slices.Contains(Components(), component) {
		return fmt.Errorf("there is no component %s; there are: %s", component, strings.Join(Components(), ", "))
	}
	path := filepath.Join(l.controlPlane(), "logs", component+".log")
	if component == Supervisor {
		path = l.log()
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if tail != nil {
		err = logfile.SeekTail(f, *tail)
	}
	if err == nil {
		_, err = io.Copy(out, f)
	}
	return errors.Join(err, f.Close())
}

func (l clusterLayout) podLog(ctx context.Context, request LogRequest, out io.Writer) error {
	c, err := l.client()
	if err != nil {
		return err
	}
	pods, err := c.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("pods of %s: %w", l.name(), err)
	}
	pod, err := findPod(pods.Items, request.Pod)
	if err != nil {
		return err
	}
	stream, err := c.Pods(pod.Namespace).GetLogs(pod.Name, &request.Options).Stream(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, stream)
	return errors.Join(err, stream.Close())
}

// findPod finds the Pod that a user means.
func findPod(pods []corev1.Pod, wanted string) (*corev1.Pod, error) {
	var begin []*corev1.Pod
	var known []string
	for i := range pods {
		pod := &pods[i]
		full := pod.Namespace + "/" + pod.Name
		known = append(known, full)
		if full == wanted {
			return pod, nil
		}
		if strings.HasPrefix(pod.Name, wanted) || strings.HasPrefix(full, wanted) {
			begin = append(begin, pod)
		}
	}
	switch len(begin) {
	case 1:
		return begin[0], nil
	case 0:
		return nil, fmt.Errorf("no pod is called %s; there are: %s", wanted, strings.Join(known, ", "))
	default:
		return nil, errors.New(strconv.Itoa(len(begin)) + " pods are called " + wanted + "...; give the whole NAMESPACE/NAME")
	}
}
