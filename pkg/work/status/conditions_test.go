package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// configMap is the reference to a manifest that can be applied.
func configMap(ordinal int, name string) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{
		Ordinal: int32(ordinal),
		Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: name,
	}
}

func TestAppliedOfManifest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		want metav1.Condition
	}{
		{"applied", nil, metav1.Condition{Status: "True", Reason: "AppliedManifestComplete", Message: "Apply manifest complete"}},
		{"failed", errors.New("no such kind"), metav1.Condition{Status: "False", Reason: "AppliedManifestFailed", Message: "Failed to apply manifest: no such kind"}},
		{
			"ignored fields that cannot be found", fmt.Errorf("apply: %w", &status.IgnoreFieldsError{Err: errors.New("jq: bad path")}),
			metav1.Condition{Status: "False", Reason: "AppliedManifestSSAIgnoreFieldError", Message: "Failed to process ignoreFields: apply: jq: bad path"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Type, c.want.ObservedGeneration = "Applied", 7
			if diff := cmp.Diff(c.want, status.Applied(c.err, 7)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnoreFieldsErrorHasItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	if err := error(&status.IgnoreFieldsError{Err: cause}); !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("got %v", err)
	}
}

func TestAvailableOfManifest(t *testing.T) {
	t.Parallel()
	complete := configMap(0, "a")
	without := func(change func(*workv1.ManifestResourceMeta)) workv1.ManifestResourceMeta {
		meta := complete
		change(&meta)
		return meta
	}
	incomplete := metav1.Condition{Status: "Unknown", Reason: "IncompleteResourceMeta", Message: "Resource meta is incomplete"}
	for _, c := range []struct {
		name string
		meta workv1.ManifestResourceMeta
		err  error
		want metav1.Condition
	}{
		{"exists", complete, nil, metav1.Condition{Status: "True", Reason: "ResourceAvailable", Message: "Resource is available"}},
		{
			"does not exist", complete, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a"),
			metav1.Condition{Status: "False", Reason: "ResourceNotAvailable", Message: "Resource is not available"},
		},
		{
			"cannot be read", complete, errors.New("timeout"),
			metav1.Condition{Status: "Unknown", Reason: "FetchingResourceFailed", Message: "Failed to fetch resource: timeout"},
		},
		{"has no resource", without(func(m *workv1.ManifestResourceMeta) { m.Resource = "" }), nil, incomplete},
		{"has no version", without(func(m *workv1.ManifestResourceMeta) { m.Version = "" }), nil, incomplete},
		{"has no name", without(func(m *workv1.ManifestResourceMeta) { m.Name = "" }), errors.New("no mapping"), incomplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Type = "Available"
			if diff := cmp.Diff(c.want, status.Available(c.meta, c.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeleting(t *testing.T) {
	t.Parallel()
	want := metav1.Condition{
		Type: "Deleting", Status: "True", Reason: "WorkDeleting", Message: "ManifestWork is being deleted", ObservedGeneration: 7,
	}
	if diff := cmp.Diff(want, status.Deleting(7)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessagesFitTheAPI(t *testing.T) {
	t.Parallel()
	long := errors.New(strings.Repeat("ä", 40000))
	for _, condition := range []metav1.Condition{status.Applied(long, 1), status.Available(configMap(0, "a"), long)} {
		if !utf8.ValidString(condition.Message) || utf8.RuneCountInString(condition.Message) > 32768 {
			t.Errorf("%s has a message of %d characters", condition.Type, utf8.RuneCountInString(condition.Message))
		}
	}
}
