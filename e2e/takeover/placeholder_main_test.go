package takeover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// TestMain is a program of OCM when it is started with the arguments of one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"/registration-operator", "/registration", "/work", "/placement", "/addon", "/workload"}, os.Args[1]) {
		if err := placeholder(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// drain is how long a webhook serves after it was told to stop. A busy control plane takes
// seconds until it no longer sends requests to a Pod that ends.
const drain = 10 * time.Second

// placeholder does nothing, or serves webhooks, until it is told to stop.
func placeholder(args []string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if !slices.Contains(args, "webhook-server") {
		<-ctx.Done()
		return nil
	}
	const certs = "/tmp/k8s-webhook-server/serving-certs"
	server := &http.Server{
		Addr: net.JoinHostPort(os.Getenv("POD_IP"), "9443"), ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if ctx.Err() != nil { // No connection is idle at the end, when a request could meet its close.
				w.Header().Set("Connection", "close")
			}
			answer(w, req)
		}),
	}
	answered := make(chan error, 1)
	go func() {
		<-ctx.Done()
		time.Sleep(drain)
		answered <- server.Shutdown(context.Background())
	}()
	err := server.ListenAndServeTLS(filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return <-answered // Shutdown returns after the last answer, and this process ends then.
	}
	return err
}

// answer allows everything and converts add-ons.
func answer(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var review any
	if strings.HasPrefix(req.URL.Path, "/convert") {
		review, err = convert(body)
	} else {
		review, err = admit(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(review)
}

func admit(body []byte) (any, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	return review, nil
}

func convert(body []byte) (any, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	version, err := schema.ParseGroupVersion(review.Request.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		converted, err := conversion.Convert(obj, version)
		if err != nil {
			return nil, err
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	review.Request = nil
	return review, nil
}
