package install

import corev1 "k8s.io/api/core/v1"

// GivesUp reports whether a wait ends when a Pod reports these reasons one after the other.
func GivesUp(pods ...*corev1.Pod) bool {
	var p pulls
	for _, pod := range pods {
		p = p.next(pod)
	}
	return p.failed >= enoughPulls
}
