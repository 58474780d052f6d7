package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// Now returns the time of the scope's clock.
func Now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// commands has command lines as a user without connection flags reads them.
type commands struct{}

// Command implements diagnose.Commands.
func (commands) Command(args ...string) string { return "ocm " + strings.Join(args, " ") }

// Elsewhere implements diagnose.Commands.
func (commands) Elsewhere(args ...string) string { return "ocm " + strings.Join(args, " ") }

// Kubectl implements diagnose.Commands.
func (commands) Kubectl(args ...string) string { return "kubectl " + strings.Join(args, " ") }

// denied creates objects, but for access reviews, which it leaves unanswered: they deny.
func denied(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	if _, review := obj.(*authorizationv1.SubjectAccessReview); review {
		return nil
	}
	return c.Create(ctx, obj, opts...)
}

// Scope returns the scope of a cluster with the objects, whose access reviews deny. A warning
// fails the test.
func Scope(tb testing.TB, objs ...client.Object) diagnose.Scope {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`)
	}))
	tb.Cleanup(server.Close)
	types := scheme.New()
	byName := func(obj client.Object) []string { return []string{obj.GetName()} }
	builder := fake.NewClientBuilder().WithScheme(types).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(types)).
		WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{Create: denied}).
		WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, byName).WithIndex(&appsv1.Deployment{}, metav1.ObjectNameField, byName).
		WithIndex(&corev1.Secret{}, "type", secretType)
	return diagnose.Scope{
		Commands: commands{}, Client: builder.Build(), Config: &rest.Config{Host: server.URL}, Clock: clocktesting.NewFakeClock(Now()),
		Warn: func(format string, args ...any) { tb.Errorf(format, args...) },
	}
}

// secretType indexes Secrets.
func secretType(obj client.Object) []string {
	if secret, ok := obj.(*corev1.Secret); ok {
		return []string{string(secret.Type)}
	}
	return nil
}

// Outcome makes checks in order, and returns the outcome of the one called name.
func Outcome(tb testing.TB, steps []finding.Step, name string) finding.Outcome {
	tb.Helper()
	for _, check := range diagnose.Run(tb.Context(), "", steps).Checks {
		if check.Name == name {
			return check.Outcome
		}
	}
	tb.Fatalf("no check is called %q", name)
	return finding.Outcome{}
}
