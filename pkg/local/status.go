package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// askTimeout bounds what Status asks an API server.
const askTimeout = 5 * time.Second

// ClusterStatus is the status of a cluster.
type ClusterStatus struct {
	Name string `json:"name"`
	State
	// Pods are the Pods that run, of all Pods. They are unknown, -1, when the
	// API server does not answer.
	PodsRunning int `json:"podsRunning"`
	PodsTotal   int `json:"podsTotal"`
	// Dir is the cluster's directory.
	Dir string `json:"dir"`
}

// Status returns the status of the clusters of a directory. The error wraps
// ErrNoClusters when there are none.
func Status(ctx context.Context, dir string) ([]ClusterStatus, error) {
	l := layout(dir)
	names, err := l.existing("")
	if err != nil {
		return nil, err
	}
	statuses := make([]ClusterStatus, 0, len(names))
	for _, name := range names {
		status, err := l.cluster(name).status(ctx)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

func (l clusterLayout) status(ctx context.Context) (ClusterStatus, error) {
	s := ClusterStatus{Name: l.name(), Dir: string(l), PodsRunning: -1, PodsTotal: -1}
	if err := readJSON(l.state(), &s.State); err != nil {
		return s, err
	}
	pid, err := l.supervisor()
	if err != nil {
		return s, err
	}
	if pid == 0 {
		if s.Phase != Failed {
			s.Phase, s.Message = Stopped, ""
		}
		s.PID, s.Components = 0, nil
		return s, nil
	}
	if pid != s.PID { // it has not written anything yet
		s.State = State{PID: pid, Phase: Starting}
		return s, nil
	}
	if s.Phase == Running {
		s.Message = ""
	}
	if err := s.countPods(ctx, l); err != nil && s.Phase == Running {
		s.Phase, s.Message = Degraded, "the API server does not answer: "+err.Error()
	}
	return s, nil
}

func (s *ClusterStatus) countPods(ctx context.Context, l clusterLayout) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := l.client()
	if err != nil {
		return err
	}
	pods, err := c.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.PodsRunning, s.PodsTotal = 0, len(pods.Items)
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			s.PodsRunning++
		}
	}
	return nil
}

// client is the administrator's.
func (l clusterLayout) client() (*corev1client.CoreV1Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", l.name(), err)
	}
	config.QPS = -1
	return corev1client.NewForConfig(config)
}
