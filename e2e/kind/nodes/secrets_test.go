package nodes_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The sample add-on, of which the hub has the template.
const (
	addOn          = "heartbeat"
	addOnNamespace = "open-cluster-management-agent-addon"
	addOnSecret    = addOn + "-hub-kubeconfig"
)

// TestSecretRefresh takes the credential of an add-on's agent away. The agent gets another
// one, the kubelet puts it into the Pod that runs, and heartbeats go on with it.
func TestSecretRefresh(t *testing.T) {
	awaitAvailable(t, "True")
	template, err := os.ReadFile("../../../examples/heartbeat/deploy/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(template))
	apply(t, fmt.Sprintf("apiVersion: addon.open-cluster-management.io/v1beta1\nkind: ManagedClusterAddOn\nmetadata: {namespace: %s, name: %s}\nspec: {}\n", cluster, addOn))
	kubectl(t, hub, "wait", "configmap/"+addOn, "-n", cluster, "--for=create", "--timeout="+patience.String())
	pods := addOnPods(t)
	old := certificate(t)

	kubectl(t, cluster, "-n", addOnNamespace, "delete", "secret", addOnSecret)
	kubectl(t, cluster, "-n", addOnNamespace, "wait", "secret/"+addOnSecret, "--for=create", "--timeout="+patience.String())
	mounted(t, old)
	before := heartbeat(t)
	eventually(t, "another heartbeat", func() error {
		if heartbeat(t) == before {
			return errors.New("the last one is " + before)
		}
		return nil
	})
	if now := addOnPods(t); now != pods {
		t.Errorf("the Pods were %s and are %s", pods, now)
	}
}

// mounted waits until the kubelet has put a certificate that is not old into the Pod.
func mounted(t *testing.T, old string) {
	t.Helper()
	const volumes = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~secret/*/tls.crt"
	container := node(t, cluster)
	eventually(t, "the kubelet refreshes the Secret", func() error {
		now := certificate(t)
		if now == "" || now == old {
			return errors.New("the Secret has no new certificate")
		}
		files, err := run(t.Context(), "docker", "exec", container, "sh", "-c", "cat "+volumes)
		if err == nil && !strings.Contains(files, now) {
			err = errors.New("no volume has the new certificate")
		}
		return err
	})
}

// certificate is what the Secret has.
func certificate(t *testing.T) string {
	t.Helper()
	data := kubectl(t, cluster, "-n", addOnNamespace, "get", "secret", addOnSecret, "--ignore-not-found", "-o", `jsonpath={.data.tls\.crt}`)
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// heartbeat is the last one that the hub has.
func heartbeat(t *testing.T) string {
	t.Helper()
	return kubectl(t, hub, "-n", cluster, "get", "configmap", addOn, "-o", "jsonpath={.data.sequence}")
}

// addOnPods tells the Pods of the add-on's agent from others, and how often they restarted.
func addOnPods(t *testing.T) string {
	t.Helper()
	return kubectl(t, cluster, "-n", addOnNamespace, "get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name}:{.status.containerStatuses[*].restartCount} {end}")
}
