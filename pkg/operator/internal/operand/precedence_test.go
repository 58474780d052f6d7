package operand_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

func TestSort(t *testing.T) {
	t.Parallel()
	at := func(name string, second int64, finalizers ...string) *operatorv1.Klusterlet {
		return &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)), Finalizers: finalizers,
		}}
	}
	list := []*operatorv1.Klusterlet{
		at("newer", 2), at("b", 1), at("a", 1), at("foreign", 3, "other"), at("applied-newer", 9, "f"), at("applied", 8, "f"),
	}
	operand.SortByPrecedence(list, "f")
	var got []string
	for _, k := range list {
		got = append(got, k.Name)
	}
	if diff := cmp.Diff([]string{"applied", "applied-newer", "a", "b", "newer", "foreign"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
