package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
)

const (
	heartbeat     = 10 * time.Second
	leaseDuration = 40 * time.Second
	leaseRetry    = 2 * time.Second
	maxPods       = 110
)

// register creates the Node, or updates one that an earlier run has left.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.config.Name,
		Labels: map[string]string{
			corev1.LabelHostname:   n.config.Name,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}}
	node.Status = n.nodeStatus(nil)
	err := n.api.Create(ctx, node)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := n.api.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	return n.report(ctx, node)
}

// report writes the status of a Node that was just read.
func (n *Node) report(ctx context.Context, node *corev1.Node) error {
	before := node.DeepCopy()
	node.Status = n.nodeStatus(before.Status.Conditions)
	return n.api.Status().Patch(ctx, node, client.MergeFrom(before))
}

// contradict writes the status again if others have changed a condition. The node
// lifecycle controller does when a lease is late, because the machine was busy or
// suspended, and leaves it to the node to say that it is back.
func (n *Node) contradict(ctx context.Context) error {
	var node corev1.Node
	if err := n.api.Get(ctx, client.ObjectKey{Name: n.config.Name}, &node); err != nil {
		return err
	}
	for _, c := range n.nodeConditions(nil) {
		found := slices.IndexFunc(node.Status.Conditions, func(now corev1.NodeCondition) bool { return now.Type == c.Type })
		if found < 0 || node.Status.Conditions[found].Status != c.Status {
			return n.report(ctx, &node)
		}
	}
	return nil
}

// nodeStatus is the whole status. What says that the node lives is its lease.
func (n *Node) nodeStatus(before []corev1.NodeCondition) corev1.NodeStatus {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory(), resource.BinarySI),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = n.config.Name
	}
	return corev1.NodeStatus{
		Capacity:    resources,
		Allocatable: resources,
		Conditions:  n.nodeConditions(before),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.addresses.NodeIP()},
			{Type: corev1.NodeHostName, Address: n.config.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubelet.Port}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: hostname, SystemUUID: hostname, BootID: hostname,
			KernelVersion: kernel(), OSImage: "local processes",
			ContainerRuntimeVersion: "local://1", KubeletVersion: n.config.Version,
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
	}
}

func (n *Node) nodeConditions(before []corev1.NodeCondition) []corev1.NodeCondition {
	now := metav1.NewTime(n.config.Clock.Now())
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		c := corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		for _, old := range before {
			if old.Type == kind && old.Status == status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		return c
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "Memory is not watched."),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "The disk is not watched."),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "Process ids are not watched."),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "Pods run as local processes."),
	}
}

// beat renews the node's lease, and puts its status right, until ctx is done.
func (n *Node) beat(ctx context.Context) {
	for ctx.Err() == nil {
		delay := heartbeat
		err := n.renewLease(ctx)
		if err == nil {
			err = n.contradict(ctx)
		}
		if err != nil {
			n.config.Log.Info("The node could not report that it is alive", "error", err.Error())
			delay = leaseRetry
		}
		pause.For(ctx, n.config.Clock, delay)
	}
}

func (n *Node) renewLease(ctx context.Context) error {
	now := metav1.NewMicroTime(n.config.Clock.Now())
	key := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: n.config.Name}
	var lease coordinationv1.Lease
	err := n.api.Get(ctx, key, &lease)
	if err == nil {
		lease.Spec.RenewTime = &now
		return n.api.Update(ctx, &lease)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	lease = coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       new(n.config.Name),
			LeaseDurationSeconds: new(int32(leaseDuration.Seconds())),
			RenewTime:            &now,
		},
	}
	return n.api.Create(ctx, &lease)
}

// memory is the machine's memory in bytes.
func memory() int64 {
	var total int64
	data, err := os.ReadFile("/proc/meminfo")
	if err == nil {
		_, err = fmt.Sscanf(string(data), "MemTotal: %d kB", &total)
	}
	if err != nil {
		return 4 << 30
	}
	return total << 10
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil || len(data) == 0 {
		return "unknown"
	}
	return string(data[:len(data)-1])
}

// errStopped ends what runs as long as the node does.
var errStopped = errors.New("the node stops")
