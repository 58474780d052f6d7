package install_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// TestGivesUp: a wait ends with the second failed pull that it sees, and not because the
// first one is reported for long.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	const failed, backOff = "ErrImagePull", "ImagePullBackOff"
	for name, tc := range map[string]struct {
		reasons []string
		want    bool
	}{
		"nothing yet":                     {reasons: []string{"ContainerCreating"}},
		"the first failure, for long":     {reasons: []string{"", failed, failed, failed, backOff, backOff}},
		"the second failure":              {reasons: []string{failed, backOff, failed}, want: true},
		"it backed off before":            {reasons: []string{backOff, backOff}},
		"it backed off, and fails again":  {reasons: []string{backOff, failed}, want: true},
		"it is pulled in the end":         {reasons: []string{failed, backOff, ""}},
		"the registry, then the image":    {reasons: []string{"RegistryUnavailable", backOff, failed}, want: true},
		"a name that is none":             {reasons: []string{"InvalidImageName"}, want: true},
		"an image that is never pulled":   {reasons: []string{"ErrImageNeverPull"}, want: true},
		"it starts between two failures ": {reasons: []string{failed, "", failed}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []*corev1.Pod
			for _, reason := range tc.reasons {
				pod := &corev1.Pod{}
				if reason != "" {
					pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
				}
				pods = append(pods, pod)
			}
			if got := install.GivesUp(pods...); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
