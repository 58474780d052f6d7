package conversion

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// reviewKind is the kind of what the API server sends.
const reviewKind = "ConversionReview"

// errNoReview says that a body is not what the API server sends to a conversion
// webhook.
var errNoReview = errors.New("the body must be a ConversionReview of apiextensions.k8s.io/v1 or v1beta1 with a request")

// Answer answers a ConversionReview in the version of the request. The two versions, v1
// and v1beta1, have the same fields. Problems of an object are part of the answer; an
// error means that body is not a ConversionReview.
func Answer(body []byte) (*apiextensionsv1.ConversionReview, error) {
	var review apiextensionsv1.ConversionReview
	if err := utiljson.Unmarshal(body, &review); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoReview, err)
	}
	version, ok := strings.CutPrefix(review.APIVersion, apiextensionsv1.GroupName+"/")
	if !ok || review.Kind != reviewKind || review.Request == nil || (version != "v1" && version != "v1beta1") {
		return nil, errNoReview
	}
	review.Response = answer(review.Request)
	review.Request = nil
	return &review, nil
}

// answer converts every object or none.
func answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID}
	converted, err := convertAll(request)
	if err != nil {
		response.Result = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Message: err.Error()}
		return response
	}
	response.Result = metav1.Status{Status: metav1.StatusSuccess}
	response.ConvertedObjects = converted
	return response
}

func convertAll(request *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	to, err := schema.ParseGroupVersion(request.DesiredAPIVersion)
	if err != nil {
		return nil, fmt.Errorf("the desired API version: %w", err)
	}
	out := make([]runtime.RawExtension, len(request.Objects))
	for i := range request.Objects {
		if out[i].Raw, err = convertRaw(request.Objects[i].Raw, to); err != nil {
			return nil, fmt.Errorf("object %d of %d: %w", i+1, len(request.Objects), err)
		}
	}
	return out, nil
}

// convertRaw converts one object and says in its errors which one it was.
func convertRaw(raw []byte, to schema.GroupVersion) ([]byte, error) {
	in := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &in.Object); err != nil {
		return nil, fmt.Errorf("cannot be read as JSON: %w", err)
	}
	if in.Object == nil {
		return nil, errors.New("is no JSON object")
	}
	out, err := Convert(in, to)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", in.GetKind(), strings.TrimPrefix(in.GetNamespace()+"/"+in.GetName(), "/"), err)
	}
	data, err := utiljson.Marshal(out.Object)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	return data, nil
}
