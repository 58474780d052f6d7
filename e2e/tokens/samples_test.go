package tokens_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "token-authorizer", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestExternalSecrets does what External Secrets Operator does with the sample
// store: it reads a Secret of the hub with the token of a Pod of its own. The
// rules, and what the hub grants, are those of the samples.
func TestExternalSecrets(t *testing.T) {
	t.Parallel()
	c, admin := newCluster(t), hub.Client(t)
	target(t, "cluster1-secrets", "external-secrets")
	for _, obj := range hubObjects(t) {
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1-secrets", Name: "database"}, StringData: map[string]string{"password": "a password"}}
	if err := admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	a := newAuthorizer(t, "--clusters-config="+writeFile(t, "clusters.yaml", sampleRules(t, c)), "--strict").ready(t)
	f := newFront(t, []*authorizer{a}, nil)

	f.refused(t, c.mint(t, "external-secrets", "external-secrets", audience), http.StatusForbidden, "not_bound")
	token := podToken(t, c, "external-secrets", "external-secrets")
	f.expect(t, token, serviceAccount("cluster1-secrets", "external-secrets"))
	for path, want := range map[string]int{
		"/api/v1/namespaces/cluster1-secrets/secrets/database": http.StatusOK,
		"/api/v1/namespaces/default/secrets":                   http.StatusForbidden,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := f.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want || want == http.StatusOK && !bytes.Contains(body, []byte("YSBwYXNzd29yZA==")) {
			t.Errorf("%s: %s %v %s", path, resp.Status, err, body)
		}
	}
}

// sampleRules is the sample's configuration of cluster1, with the keys of a
// cluster that publishes none.
func sampleRules(t *testing.T, c *cluster) []byte {
	t.Helper()
	text := regexp.MustCompile(`(?s)# One with keys.*deny:`).ReplaceAllString(string(sample(t, "clusters.yaml")), "deny:")
	keys := fmt.Sprintf("- name: cluster1\n  issuer: %s\n  keys: {jwks: %s}\n", sharedIssuer, c.KeySet(t))
	return []byte(regexp.MustCompile(`- name: cluster1\n  issuer: .*\n  keys: .*\n`).ReplaceAllLiteralString(text, keys))
}

// hubObjects are the sample's objects on the hub.
func hubObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var objs []*unstructured.Unstructured
	for document := range bytes.SplitSeq(sample(t, "external-secrets.yaml"), []byte("\n---\n")) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			t.Fatal(err)
		}
		if obj.GetNamespace() == "cluster1-secrets" {
			objs = append(objs, obj)
		}
	}
	if len(objs) != 3 {
		t.Fatalf("%d objects", len(objs))
	}
	return objs
}

// podToken has an API server issue a token that is bound to a Pod, as a kubelet
// asks for it.
func podToken(t *testing.T, c *cluster, namespace, name string) string {
	t.Helper()
	sa := account(t, c.admin, namespace, name)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"},
		Spec:       corev1.PodSpec{ServiceAccountName: name, Containers: []corev1.Container{{Name: "operator", Image: "operator"}}},
	}
	if err := c.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if err := c.admin.SubResource("token").Create(t.Context(), sa, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}
