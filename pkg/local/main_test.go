package local_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
)

// The test binary is its own supervisor, container set-up and image.
func TestMain(m *testing.M) {
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	switch command {
	case "supervise":
		supervise(os.Args[2], os.Args[3])
	case "container":
		fmt.Fprintln(os.Stderr, sandbox.Enter())
		os.Exit(1)
	case "version":
	case "webhook":
		webhook()
	default:
		goleak.VerifyTestMain(m)
	}
}

func supervise(dir, cluster string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, _ := os.Executable()
	err := local.Supervise(ctx, local.SupervisorOptions{
		Dir: dir, Cluster: cluster, Container: []string{self, "container"}, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// webhook refuses every object that it is asked about.
func webhook() {
	fmt.Println("serving")
	pair, err := tls.LoadX509KeyPair("/tls/tls.crt", "/tls/tls.key")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	server := &http.Server{
		Addr:      net.JoinHostPort(os.Getenv("POD_IP"), "9443"),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			if review.Request != nil {
				review.Response = &admissionv1.AdmissionResponse{
					UID: review.Request.UID, Result: &metav1.Status{Message: "refused by the webhook"},
				}
			}
			_ = json.NewEncoder(w).Encode(review)
		}),
	}
	fmt.Println(server.ListenAndServeTLS("", ""))
}
