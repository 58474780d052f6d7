package hub

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// SelfTestUser is the user of the certificate that the self-test asks for. No
// rule grants it anything, and it is in no group.
const SelfTestUser = "open-cluster-management:self-test"

const (
	selfTestSeconds  = 600 // the shortest life that can be asked for
	selfTestInterval = 250 * time.Millisecond
	selfTestCleanup  = 10 * time.Second
	// selfTestAge is longer than any self-test takes.
	selfTestAge = time.Minute
)

// NoSignerError says that the hub does not issue client certificates.
type NoSignerError struct {
	// Waited is how long the certificate was waited for.
	Waited time.Duration
	// Failure is the reason that the signer gave, if any.
	Failure string
}

// Error implements error.
func (e *NoSignerError) Error() string {
	if e.Failure != "" {
		return "the signer " + certificatesv1.KubeAPIServerClientSignerName + " refused a test certificate: " + e.Failure
	}
	return fmt.Sprintf("the hub approved a test certificate and issued none within %s: nothing serves the signer %s",
		e.Waited, certificatesv1.KubeAPIServerClientSignerName)
}

// SelfTest asks the hub for a certificate that is worth nothing, approves it,
// waits until it is issued and deletes the request, which a signer that comes
// later would still issue. A hub that issues none, as those of some providers, is a *NoSignerError.
func SelfTest(ctx context.Context, c client.Client, clk clock.Clock, patience time.Duration) (err error) {
	if err := sweepSelfTests(ctx, c, clk.Now()); err != nil {
		return err
	}
	request, err := selfTestRequest()
	if err != nil {
		return err
	}
	if err := c.Create(ctx, request); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	defer func() {
		// It must go even when the user has lost patience.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfTestCleanup)
		defer cancel()
		if deleteErr := client.IgnoreNotFound(c.Delete(cleanup, request.DeepCopy())); deleteErr != nil {
			err = errors.Join(err, fmt.Errorf("self-test: delete request %s by hand: %w", request.Name, deleteErr))
		}
	}()
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "SelfTest", Message: "A test of whether this hub issues client certificates; it is deleted at once.",
	}}
	if err := c.SubResource("approval").Update(ctx, request); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	return awaitCertificate(ctx, c, clk, request.Name, patience)
}

// sweepSelfTests deletes the requests of tests that were killed. Younger ones
// may belong to a test that runs right now.
func sweepSelfTests(ctx context.Context, c client.Client, now time.Time) error {
	var list certificatesv1.CertificateSigningRequestList
	if err := c.List(ctx, &list, client.HasLabels{names.LabelSelfTest}); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	for i := range list.Items {
		if now.Sub(list.Items[i].CreationTimestamp.Time) < selfTestAge {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, &list.Items[i])); err != nil {
			return fmt.Errorf("self-test: %w", err)
		}
	}
	return nil
}

func awaitCertificate(ctx context.Context, c client.Client, clk clock.Clock, name string, patience time.Duration) error {
	for start := clk.Now(); ; {
		var live certificatesv1.CertificateSigningRequest
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &live); err != nil {
			return fmt.Errorf("self-test: %w", err)
		}
		if len(live.Status.Certificate) > 0 {
			return nil
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type == certificatesv1.CertificateFailed {
				return &NoSignerError{Failure: condition.Message}
			}
		}
		if clk.Since(start) >= patience {
			return &NoSignerError{Waited: patience}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clk.After(selfTestInterval):
		}
	}
}

func selfTestRequest() (*certificatesv1.CertificateSigningRequest, error) {
	key, _, err := pemutil.NewKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: SelfTestUser}}, key)
	if err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "ocm-self-test-", Labels: map[string]string{names.LabelSelfTest: "true"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemutil.EncodeRequest(der), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: new(int32(selfTestSeconds)),
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, nil
}
