package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// shownGrants is how many clusters the check of grants names.
const shownGrants = 3

// grants checks whether clusters have the identities that the hub grants outside its own API.
func (h *Hub) grants(ctx context.Context) finding.Outcome {
	var list clusterv1.ManagedClusterList
	if err := h.Client.List(ctx, &list); err != nil {
		return finding.Broken(err)
	}
	granted := 0
	var waiting, failing []string
	for i := range list.Items {
		c := apimeta.FindStatusCondition(list.Items[i].Status.Conditions, names.ConditionRegistrationGranted)
		switch {
		case c == nil, c.Reason == names.ReasonRevoked:
		case c.Status == metav1.ConditionTrue:
			granted++
		case c.Reason == names.ReasonGrantPending:
			waiting = append(waiting, list.Items[i].Name+": "+c.Message)
		default:
			failing = append(failing, list.Items[i].Name+": "+c.Message)
		}
	}
	sum := fmt.Sprintf("%d granted, %d waiting, %d failing", granted, len(waiting), len(failing))
	named := slices.Concat(failing, waiting)
	message := strings.Join(append([]string{sum}, named[:min(shownGrants, len(named))]...), "\n")
	try := h.Command("check cluster NAME")
	switch {
	case len(failing) > 0:
		return finding.Bad(try, "%s", message)
	case len(waiting) > 0:
		return finding.Caution(try, "%s", message)
	case granted == 0:
		return finding.Good("no cluster has one")
	}
	return finding.Good("%s", sum)
}
