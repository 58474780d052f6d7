package conversion_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

const (
	asAlpha = `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},"spec":{"installNamespace":"x"}}`
	asBeta  = `{"apiVersion":"addon.open-cluster-management.io/v1beta1","kind":"ManagedClusterAddOn","metadata":{"annotations":{"addon.open-cluster-management.io/v1alpha1-install-namespace":"x"},"name":"a","namespace":"c"},"spec":{}}`
)

// review is what the API server sends.
func review(t *testing.T, version, desired string, objects ...string) []byte {
	t.Helper()
	review := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/" + version, Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: "uid", DesiredAPIVersion: desired},
	}
	for _, object := range objects {
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	data, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := conversion.NewHandler(logr.Discard(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func post(t *testing.T, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, conversion.Path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler(t).ServeHTTP(recorder, request)
	return recorder
}

func response(t *testing.T, recorder *httptest.ResponseRecorder) *apiextensionsv1.ConversionReview {
	t.Helper()
	if recorder.Code != http.StatusOK {
		t.Fatalf("%d %s", recorder.Code, recorder.Body)
	}
	out := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), out); err != nil {
		t.Fatal(err)
	}
	if out.Response == nil || out.Response.UID != "uid" || out.Request != nil {
		t.Fatalf("%s", recorder.Body)
	}
	return out
}

func TestReview(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			out := response(t, post(t, review(t, version, beta.String(), asAlpha, asBeta, asAlpha)))
			if out.APIVersion != "apiextensions.k8s.io/"+version || out.Kind != "ConversionReview" {
				t.Errorf("answer in %s %s", out.APIVersion, out.Kind)
			}
			if out.Response.Result.Status != metav1.StatusSuccess || len(out.Response.ConvertedObjects) != 3 {
				t.Fatalf("%+v", out.Response)
			}
			for i, object := range out.Response.ConvertedObjects {
				if string(object.Raw) != asBeta {
					t.Errorf("object %d: %s", i, object.Raw)
				}
			}
		})
	}
}

func TestReviewThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		desired, object, want string
	}{
		"an object that is wrong": {
			beta.String(), strings.Replace(asAlpha, `"x"`, `7`, 1),
			"object 2 of 2: ManagedClusterAddOn c/a: spec.installNamespace is no text",
		},
		"another kind":           {beta.String(), `{"apiVersion":"v1","kind":"Pod"}`, "object 2 of 2: Pod : Pod in v1 cannot be converted"},
		"another version":        {"addon.open-cluster-management.io/v2", asAlpha, "object 1 of 2: ManagedClusterAddOn c/a: "},
		"no version":             {"a/b/c", asAlpha, "the desired API version: "},
		"no object":              {beta.String(), `[]`, "object 2 of 2: cannot be read as JSON"},
		"null":                   {beta.String(), `null`, "object 2 of 2: "},
		"a kind that is no text": {beta.String(), `{"kind":7,"apiVersion":[]}`, "object 2 of 2: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := response(t, post(t, review(t, "v1", test.desired, asAlpha, test.object)))
			result := out.Response.Result
			if result.Status != metav1.StatusFailure || len(out.Response.ConvertedObjects) != 0 || !strings.Contains(result.Message, test.want) {
				t.Errorf("%+v", out.Response)
			}
		})
	}
}

func TestNoReview(t *testing.T) {
	t.Parallel()
	request := func(method, media, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, conversion.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		recorder := httptest.NewRecorder()
		handler(t).ServeHTTP(recorder, r)
		return recorder.Code
	}
	for name, test := range map[string]struct {
		method, media, body string
		want                int
	}{
		"a browser":       {http.MethodGet, "", "", http.StatusMethodNotAllowed},
		"a form":          {http.MethodPost, "text/plain", "", http.StatusUnsupportedMediaType},
		"no JSON":         {http.MethodPost, "application/json", "x", http.StatusBadRequest},
		"nothing":         {http.MethodPost, "application/json", "", http.StatusBadRequest},
		"another kind":    {http.MethodPost, "application/json", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"X","request":{}}`, http.StatusBadRequest},
		"another version": {http.MethodPost, "application/json", `{"apiVersion":"apiextensions.k8s.io/v2","kind":"ConversionReview","request":{}}`, http.StatusBadRequest},
		"no request":      {http.MethodPost, "application/json; charset=utf-8", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, http.StatusBadRequest},
		"too large":       {http.MethodPost, "application/json", strings.Repeat(" ", conversion.MaxRequestBytes+1), http.StatusRequestEntityTooLarge},
	} {
		if got := request(test.method, test.media, test.body); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"addon.open-cluster-management.io/v1beta1","objects":[` + asAlpha + `]}}`))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"addon.open-cluster-management.io/v1alpha1","objects":[` + asBeta + `,null,{},[]]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := conversion.Answer(body)
		if err != nil {
			return
		}
		if _, err := json.Marshal(out); err != nil {
			t.Error(err)
		}
		if ok := out.Response.Result.Status == metav1.StatusSuccess; !ok && (len(out.Response.ConvertedObjects) > 0 || out.Response.Result.Message == "") {
			t.Errorf("%+v", out.Response)
		}
	})
}
