package imageregistry

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// username is sent with a token. The registry takes any.
const username = "serviceaccount"

// Push pushes a random image with a token and returns its digest. The image is
// NAMESPACE/NAME:TAG.
func (s *Server) Push(tb testing.TB, token, image string) (digest string, err error) {
	tb.Helper()
	return s.run(tb, token, "push", "--username", username, s.Address+"/"+image)
}

// Pull pulls an image with a token and returns its digest.
func (s *Server) Pull(tb testing.TB, token, image string) (digest string, err error) {
	tb.Helper()
	return s.run(tb, token, "pull", "--username", username, s.Address+"/"+image)
}

// PullAs pulls an image as a kubelet does for the Pods of a ServiceAccount: with the
// pull secrets that it lists, in the cluster of kubeconfig.
func (s *Server) PullAs(tb testing.TB, kubeconfig []byte, namespace, account, image string) (digest string, err error) {
	tb.Helper()
	return s.run(tb, "", "pull", "--kubeconfig", file(tb, kubeconfig), "--namespace", namespace, "--service-account", account, s.Address+"/"+image)
}

// run runs the client.
func (s *Server) run(tb testing.TB, password, command string, args ...string) (digest string, err error) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), s.program, append([]string{command, "--ca", s.ca}, args...)...) //nolint:gosec // It is our own.
	cmd.Stdin = strings.NewReader(password)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
