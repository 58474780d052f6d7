package nodes_test

import (
	"strings"
	"testing"
)

// TestUnknownHubName has the agent look for a hub by a name that the cluster's DNS does
// not know, and then by the right one.
func TestUnknownHubName(t *testing.T) {
	awaitAvailable(t, "True")
	const address = "https://no-such-hub.invalid:6443"
	restore(t, joinCommand()...)
	// Without the check, join would find out by itself.
	out := wantFailure(t, joinCommand("--skip-check=hub-address", "--timeout", "60s", "--hub-apiserver", address)...)
	if !strings.Contains(out, "no-such-hub.invalid") {
		t.Errorf("join does not tell which hub it does not find:\n%s", out)
	}
}

// TestNetworkPolicy reaches the port of the token authorizer for proxies from a Pod with
// the label of its clients, and from one without.
func TestNetworkPolicy(t *testing.T) {
	if out, err := run(t.Context(), "kubectl", "--context", hub, "-n", "kube-system", "get", "daemonset", "kindnet"); err != nil {
		t.Skipf("the node image has no CNI that enforces network policies: %s", out)
	}
	const namespace = "open-cluster-management-hub"
	policy := []string{"-n", namespace, "get", "networkpolicy", "token-authorizer", "-o"}
	label := kubectl(t, hub, append(policy, `go-template={{range $key, $value := (index (index .spec.ingress 0).from 1).podSelector.matchLabels}}{{$key}}{{end}}`)...)
	port := kubectl(t, hub, append(policy, "jsonpath={.spec.ingress[0].ports[0].port}")...)
	address := kubectl(t, hub, "-n", namespace, "get", "pods", "-l", "app=token-authorizer", "-o", "jsonpath={.items[0].status.podIP}")
	for name, labels := range map[string]string{"client": label + "=true", "stranger": "app=stranger"} {
		restore(t, "kubectl", "--context", hub, "-n", namespace, "delete", "pod", name, "--ignore-not-found")
		kubectl(t, hub, "-n", namespace, "run", name, "--image=kubectl-ocm/kubectl", "--image-pull-policy=Never", "--restart=Never",
			"--labels="+labels, "--", "kubectl", "--server=https://"+address+":"+port, "--request-timeout=10s", "get", "--raw", "/")
		kubectl(t, hub, "-n", namespace, "wait", "pod/"+name, "--for=jsonpath={.status.phase}=Failed", "--timeout="+patience.String())
		// The certificate is not one that it knows; without the policy's leave it sees none.
		reached := strings.Contains(kubectl(t, hub, "-n", namespace, "logs", name), "x509")
		if want := name == "client"; reached != want {
			t.Errorf("a %s reaches the port: %v", name, reached)
		}
	}
}
