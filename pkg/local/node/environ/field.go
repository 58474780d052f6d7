package environ

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Field is the value of a field of a Pod that the downward API knows by path.
func Field(pod *corev1.Pod, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	fields := map[string]func() string{
		"metadata.name":           func() string { return pod.Name },
		"metadata.namespace":      func() string { return pod.Namespace },
		"metadata.uid":            func() string { return string(pod.UID) },
		"metadata.labels":         func() string { return lines(pod.Labels) },
		"metadata.annotations":    func() string { return lines(pod.Annotations) },
		"spec.nodeName":           func() string { return pod.Spec.NodeName },
		"spec.serviceAccountName": func() string { return pod.Spec.ServiceAccountName },
		"status.podIP":            func() string { return pod.Status.PodIP },
		"status.podIPs":           func() string { return pod.Status.PodIP },
		"status.hostIP":           func() string { return pod.Status.HostIP },
		"status.hostIPs":          func() string { return pod.Status.HostIP },
	}
	field, ok := fields[path]
	if !ok {
		return "", fmt.Errorf("the field %s is not supported by local nodes", path)
	}
	return field(), nil
}

// subscript splits name['key'].
func subscript(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	key, ok = strings.CutSuffix(rest, "']")
	return name, key, ok
}

// lines formats labels and annotations as the downward API does.
func lines(values map[string]string) string {
	list := make([]string, 0, len(values))
	for key, value := range values {
		list = append(list, key+"="+strconv.Quote(value))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// Resource is a request or limit of a container in units of the selector's
// divisor, rounded up. Without a limit it is 0; nothing limits a process here.
func Resource(pod *corev1.Pod, container string, selector *corev1.ResourceFieldSelector) (string, error) {
	if selector.ContainerName != "" {
		container = selector.ContainerName
	}
	index := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if index < 0 {
		return "", fmt.Errorf("no container %s to take %s from", container, selector.Resource)
	}
	kind, name, _ := strings.Cut(selector.Resource, ".")
	lists := map[string]corev1.ResourceList{
		"limits":   pod.Spec.Containers[index].Resources.Limits,
		"requests": pod.Spec.Containers[index].Resources.Requests,
	}
	list, ok := lists[kind]
	if !ok {
		return "", fmt.Errorf("the resource %s is not supported by local nodes", selector.Resource)
	}
	divisor := selector.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	quantity := list[corev1.ResourceName(name)]
	value := math.Ceil(quantity.AsApproximateFloat64() / divisor.AsApproximateFloat64())
	return strconv.FormatInt(int64(value), 10), nil
}
