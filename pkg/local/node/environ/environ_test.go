package environ_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/environ"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "with.dot": "x"}
	lookup := func(name string) (string, bool) { value, ok := vars[name]; return value, ok }
	for in, want := range map[string]string{
		"":                 "",
		"plain":            "plain",
		"$(A)":             "1",
		"x$(A)y$(A)z":      "x1y1z",
		"$(EMPTY)|":        "|",
		"$(B)":             "$(A)", // values are not expanded again
		"$(NOT_SET)":       "$(NOT_SET)",
		"$$(A)":            "$(A)",
		"$$$(A)":           "$1",
		"$$$$(A)":          "$$(A)",
		"$$":               "$",
		"$":                "$",
		"a$":               "a$",
		"$A":               "$A",
		"$(A":              "$(A",
		"$(":               "$(",
		"$()":              "$()",
		"$(A))":            "1)",
		"$($(A))":          "$($(A))",
		"$(with.dot)":      "x",
		"http://$(A):80/$": "http://1:80/$",
	} {
		if got := environ.Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzExpandWithoutVariables(f *testing.F) {
	f.Add("$(A) $$(B) $")
	f.Fuzz(func(t *testing.T, s string) {
		none := func(string) (string, bool) { return "", false }
		if strings.Contains(s, "$$") {
			return // an escape is not the identity
		}
		if got := environ.Expand(s, none); got != s {
			t.Errorf("Expand(%q) = %q without variables", s, got)
		}
	})
}

type objects struct{}

func (objects) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	if namespace == "ns" && name == "secret" {
		return &corev1.Secret{Data: map[string][]byte{"password": []byte("s3cret")}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (objects) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if namespace == "ns" && name == "config" {
		return &corev1.ConfigMap{Data: map[string]string{"LEVEL": "2", "OVER": "from"}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod", UID: "uid",
			Labels: map[string]string{"app": "x", "b": `q"`},
		},
		Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "sa", Containers: []corev1.Container{{
			Name:      "c",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}},
		}}},
		Status: corev1.PodStatus{PodIP: "127.1.1.2", HostIP: "127.1.1.1"},
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	optional := true
	secretKey := func(name, key string, optional *bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional,
		}}
	}
	spec := &corev1.Container{
		Name: "c",
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: &optional}},
		},
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: field("status.podIP")},
			{Name: "NAME", ValueFrom: field("metadata.name")},
			{Name: "APP", ValueFrom: field("metadata.labels['app']")},
			{Name: "LABELS", ValueFrom: field("metadata.labels")},
			{Name: "SA", ValueFrom: field("spec.serviceAccountName")},
			{Name: "URL", Value: "http://$(POD_IP):$(PORT)/$(LATER)"},
			{Name: "LATER", Value: "x"},
			{Name: "P_OVER", Value: "env"},
			{Name: "PASSWORD", ValueFrom: secretKey("secret", "password", nil)},
			{Name: "NO_KEY", ValueFrom: secretKey("secret", "none", &optional)},
			{Name: "NO_SECRET", ValueFrom: secretKey("none", "none", &optional)},
			{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
			}}},
		},
	}
	vars, err := environ.Resolve(t.Context(), environ.Container{
		Pod: pod(), Spec: spec, Objects: objects{}, Base: map[string]string{"PORT": "80", "HOME": "/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"APP=x", "HOME=/", "LABELS=app=\"x\"\nb=\"q\\\"\"", "LATER=x", "MEMORY=100", "NAME=pod", "PASSWORD=s3cret",
		"POD_IP=127.1.1.2", "PORT=80", "P_LEVEL=2", "P_OVER=env", "SA=sa", "URL=http://127.1.1.2:80/$(LATER)",
	}
	if diff := cmp.Diff(want, vars.List()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--at=127.1.1.2"}, vars.Expand([]string{"--at=$(POD_IP)"})); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestResolveNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]*corev1.EnvVarSource{
		"Secret secret has no key none": {SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}, Key: "none",
		}},
		`configmaps "none" not found`: {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "x",
		}},
		"the field spec.none is not supported by local nodes": field("spec.none"),
	} {
		_, err := environ.Resolve(t.Context(), environ.Container{
			Pod: pod(), Objects: objects{},
			Spec: &corev1.Container{Name: "c", Env: []corev1.EnvVar{{Name: "X", ValueFrom: source}}},
		})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
