package pages_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
)

// paged lists one ConfigMap a page, and fails at the page bad.
type paged struct {
	client.Reader

	pages, bad int
}

var errBad = errors.New("bad page")

// List implements client.Reader.
func (p paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	opts := (&client.ListOptions{}).ApplyOptions(options)
	page, _ := strconv.Atoi(opts.Continue) // The first page has no token.
	if page == p.bad {
		return errBad
	}
	maps, ok := list.(*corev1.ConfigMapList)
	if !ok || opts.Namespace != "ns" {
		return errors.New("another request")
	}
	maps.Items = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "c" + strconv.Itoa(page)}}}
	if page+1 < p.pages {
		maps.Continue = strconv.Itoa(page + 1)
	}
	return nil
}

func TestEach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		bad  int
		want []string
		err  error
	}{
		{name: "every page is visited", bad: -1, want: []string{"c0", "c1", "c2"}},
		{name: "an error ends the list", bad: 1, want: []string{"c0"}, err: errBad},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := pages.Each(t.Context(), paged{pages: 3, bad: tc.bad}, &corev1.ConfigMapList{},
				func(c *corev1.ConfigMap) { got = append(got, c.Name) }, client.InNamespace("ns"))
			if !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
