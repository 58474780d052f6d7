package upstream

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// patience is far above what a webhook takes to be asked: the machine may be busy.
const patience = time.Minute

// WorkWebhook answers as OCM's webhook for ManifestWorks: it rejects a ManifestWork
// without manifests, one with manifests that are too large, duplicate, or have no name
// or a generated one, and a change of the executor by a user who may not execute as it.
type WorkWebhook struct {
	reviewer client.Client

	mu      sync.Mutex
	refused []string
	asked   []string
}

// GuardWorks has a webhook review the works of a cluster until the test ends.
func GuardWorks(tb testing.TB, hub *controlplane.ControlPlane, cluster string) *WorkWebhook {
	tb.Helper()
	w := &WorkWebhook{reviewer: hub.Client(tb)}
	server := httptest.NewUnstartedServer(w)
	key, err := tls.X509KeyPair(hub.ServingCert(tb, "webhook", net.IPv4(127, 0, 0, 1)))
	if err != nil {
		tb.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{key}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	tb.Cleanup(server.Close)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "manifestworkvalidators." + cluster},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "manifestworkvalidators.admission.work.open-cluster-management.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL + "/validate-work-open-cluster-management-io-v1-manifestwork"), CABundle: hub.CAData,
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelClusterName: cluster}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{workv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"manifestworks"}},
			}},
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(10)), AdmissionReviewVersions: []string{"v1beta1", "v1"},
		}},
	}
	if err := w.reviewer.Create(tb.Context(), config); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.reviewer.Delete(context.WithoutCancel(tb.Context()), config) })
	empty := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "empty"}}
	await.Success(tb, patience, "the webhook is asked", func(ctx context.Context) error {
		err := w.reviewer.Create(ctx, empty.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "manifests should not be empty") {
			return nil
		}
		return errors.Join(err, errors.New("it refused nothing"))
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused, w.asked = nil, nil
	return w
}

// Asked returns the users whose writes were reviewed, and what was refused.
func (w *WorkWebhook) Asked() (users, refused []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked, w.refused
}

// ServeHTTP implements http.Handler.
func (w *WorkWebhook) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if err := w.review(request.Context(), review.Request); err != nil {
		answer.Allowed = false
		answer.Result = &metav1.Status{Message: err.Error(), Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	}
	review.Request, review.Response = nil, answer
	_ = json.NewEncoder(response).Encode(review)
}

// review returns why a write is refused.
func (w *WorkWebhook) review(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	var before, after workv1.ManifestWork
	if err := json.Unmarshal(request.Object.Raw, &after); err != nil {
		return err
	}
	if request.OldObject.Raw != nil {
		if err := json.Unmarshal(request.OldObject.Raw, &before); err != nil {
			return err
		}
	}
	refusal := w.mayExecute(ctx, request, &before, &after)
	if errs := manifest.Validate(&after); len(errs) > 0 {
		refusal = errs.ToAggregate()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, request.UserInfo.Username)
	if refusal != nil {
		w.refused = append(w.refused, fmt.Sprintf("%s %s by %s: %v", request.Operation, request.Name, request.UserInfo.Username, refusal))
	}
	return refusal
}

// mayExecute returns why a user may not set the executor of a work.
func (w *WorkWebhook) mayExecute(ctx context.Context, request *admissionv1.AdmissionRequest, before, after *workv1.ManifestWork) error {
	executor := after.Spec.Executor
	if executor == nil || executor.Subject.ServiceAccount == nil || equality.Semantic.DeepEqual(before.Spec.Executor, executor) {
		return nil
	}
	account := executor.Subject.ServiceAccount
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: request.UserInfo.Username, Groups: request.UserInfo.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: workv1.GroupName, Resource: "manifestworks", Verb: "execute-as", Namespace: after.Namespace,
			Name: names.ServiceAccountUser(account.Namespace, account.Name),
		},
	}}
	if err := w.reviewer.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("user %s may not execute as %s/%s", request.UserInfo.Username, account.Namespace, account.Name)
	}
	return nil
}
