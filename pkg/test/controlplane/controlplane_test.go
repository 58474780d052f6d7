package controlplane_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const patience = 30 * time.Second

func TestControlPlane(t *testing.T) {
	t.Parallel()
	cp := controlplane.Start(t, controlplane.WithCertDuration(2*time.Minute))
	admin := cp.Client(t)
	ctx := t.Context()

	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}); err != nil {
		t.Fatalf("admin creates a namespace: %v", err)
	}
	stranger := cp.ClientFor(t, cp.ConfigFor(t, "alice", "people"))
	if err := stranger.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists secrets: got %v, want forbidden", err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kept", Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if err := admin.Create(ctx, claim); err != nil {
		t.Fatalf("admin creates a PersistentVolumeClaim: %v", err)
	}
	if err := admin.Delete(ctx, claim); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(claim), claim); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted PersistentVolumeClaim stays with %v: no controller here removes that (%v)", claim.Finalizers, err)
	}
	if life := issue(t, cp.ControlPlane, "signed"); life == 0 || life > 8*time.Minute {
		t.Errorf("certificate life %v, want the configured one", life)
	}

	cp.StopAPIServer(t)
	if err := admin.Get(ctx, client.ObjectKey{Name: "kept"}, &corev1.Namespace{}); err == nil {
		t.Error("a killed API server answers")
	}
	taken, err := (&net.ListenConfig{}).Listen(ctx, "tcp", strings.TrimPrefix(cp.URL, "https://"))
	if err == nil {
		t.Error("the port of a killed API server can be taken by another program")
		_ = taken.Close()
	}
	cp.StartAPIServer(t)
	if err := admin.Get(ctx, client.ObjectKey{Name: "kept"}, &corev1.Namespace{}); err != nil {
		t.Errorf("after a restart under the same address: %v", err)
	}
}

func TestWithoutSigner(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t, controlplane.WithoutSigner())
	// The controllers work, which takes longer than signing would.
	c := cp.Client(t)
	eventually(t, "the default service account", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if life := issue(t, cp, "unsigned"); life != 0 {
		t.Errorf("a certificate was issued, for %v", life)
	}
}

// issue requests and approves a client certificate and returns its life; 0 when
// none was issued in a time in which a signer would have.
func issue(t *testing.T, cp *controlplane.ControlPlane, name string) time.Duration {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pemutil.EncodeRequest(der),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "Approved.",
	}}
	if _, err = requests.UpdateApproval(t.Context(), name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := patience
	if name == "unsigned" {
		limit = 3 * time.Second
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		csr, err = requests.Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0, err
	})
	if wait.Interrupted(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pemutil.ParseCertificates(csr.Status.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0].NotAfter.Sub(certs[0].NotBefore)
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}
