package operand_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

const masterLabel = "node-role.kubernetes.io/master"

func worker(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func master(name string) *corev1.Node {
	node := worker(name)
	node.Labels = map[string]string{masterLabel: ""}
	return node
}

func TestCount(t *testing.T) {
	t.Parallel()
	refuse := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no")
	}}
	for _, tc := range []struct {
		name  string
		fixed int32
		nodes []client.Object
		fault interceptor.Funcs
		want  int32
	}{
		{name: "no labelled node", nodes: []client.Object{worker("a"), worker("b")}, want: 1},
		{name: "one labelled node", nodes: []client.Object{master("a"), worker("b")}, want: 1},
		{name: "two labelled nodes", nodes: []client.Object{master("a"), master("b")}, want: 3},
		{name: "nodes cannot be listed", fault: refuse, want: 3},
		{name: "a fixed number asks nobody", fixed: 2, fault: refuse, want: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rule := operand.Replicas{
				Fixed: tc.fixed, ControlPlane: labels.SelectorFromSet(labels.Set{masterLabel: ""}),
				Nodes: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.nodes...).WithInterceptorFuncs(tc.fault).Build(),
			}
			if got := rule.Count(t.Context()); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
