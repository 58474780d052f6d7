package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resolver turns the addresses that an API server asks for into ones that can
// be dialled on this machine.
type Resolver struct {
	// Client reads Services and Pods.
	Client client.Reader
}

// Resolve returns the address to dial for host:port. Pods and nodes have
// loopback addresses and are reached as they are, and so is every host that is
// no Service.
func (r Resolver) Resolve(ctx context.Context, address string) (string, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", fmt.Errorf("address %q: the port is no number", address)
	}
	ip, err := netip.ParseAddr(host)
	if err == nil && ip.IsLoopback() {
		return address, nil
	}
	service, err := r.service(ctx, host)
	if err != nil {
		return "", err
	}
	if service == nil {
		return address, nil
	}
	return r.endpoint(ctx, service, int32(port))
}

// service finds a Service by its ClusterIP or by its name in the cluster's DNS; nil
// means that host is not a Service.
func (r Resolver) service(ctx context.Context, host string) (*corev1.Service, error) {
	name, rest, _ := strings.Cut(strings.TrimSuffix(host, ".cluster.local"), ".")
	if namespace, ok := strings.CutSuffix(rest, ".svc"); ok {
		var service corev1.Service
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
			return nil, fmt.Errorf("service %s/%s: %w", namespace, name, err)
		}
		return &service, nil
	}
	var services corev1.ServiceList
	if err := r.Client.List(ctx, &services); err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	for i := range services.Items {
		if slices.Contains(services.Items[i].Spec.ClusterIPs, host) {
			return &services.Items[i], nil
		}
	}
	return nil, nil
}

// endpoint picks a ready Pod behind a port of a Service.
func (r Resolver) endpoint(ctx context.Context, service *corev1.Service, port int32) (string, error) {
	name := service.Namespace + "/" + service.Name
	index := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if index < 0 {
		return "", fmt.Errorf("service %s has no port %d", name, port)
	}
	if len(service.Spec.Selector) == 0 {
		return "", fmt.Errorf("service %s has no selector", name)
	}
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
	if err != nil {
		return "", fmt.Errorf("pods of service %s: %w", name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !ready(pod) {
			continue
		}
		if target := targetPort(pod, service.Spec.Ports[index]); target != 0 {
			return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(target))), nil
		}
	}
	return "", fmt.Errorf("no ready pod behind port %d of service %s", port, name)
}

func ready(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

// targetPort returns the Pod's port for a port of a Service, and 0 if the Pod has no
// port of that name.
func targetPort(pod *corev1.Pod, port corev1.ServicePort) int32 {
	switch {
	case port.TargetPort.Type == intstr.String && port.TargetPort.StrVal != "":
		for _, c := range pod.Spec.Containers {
			for _, p := range c.Ports {
				if p.Name == port.TargetPort.StrVal {
					return p.ContainerPort
				}
			}
		}
		return 0
	case port.TargetPort.IntVal != 0:
		return port.TargetPort.IntVal
	default:
		return port.Port
	}
}
