package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection is a client of the hub with the credential that is in the mounted
// Secret now.
type connection struct {
	// path is the kubeconfig in it.
	path string

	current kubernetes.Interface
	// read is what current was made of.
	read []byte
	// user is who the hub says that we are, kind what we show for it.
	user, kind string
}

// client returns a client; it is a new one after a change of the Secret.
func (c *connection) client(ctx context.Context) (kubernetes.Interface, error) {
	config, read, err := load(c.path)
	if err != nil {
		return nil, err
	}
	if c.current != nil && bytes.Equal(read, c.read) {
		return c.current, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("review the identity on the hub: %w", err)
	}
	c.current, c.read, c.user, c.kind = client, read, review.Status.UserInfo.Username, "certificate"
	if config.BearerToken != "" {
		c.kind = "token"
	}
	slog.Info("connected to the hub", "user", c.user, "credential", c.kind)
	return c.current, nil
}

// load reads a kubeconfig and the files that it names, so that no cache has an older
// credential. It also returns the contents of all of them, for comparison.
func load(path string) (*rest.Config, []byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, nil, err
	}
	var read []byte
	take := func(name string, into *[]byte) error {
		if name != "" {
			data, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("reading %s: %w", filepath.Base(name), err)
			}
			*into = data
		}
		read = append(append(read, *into...), 0)
		return nil
	}
	read = append(read, config.Host...)
	token := []byte(config.BearerToken)
	for _, f := range []struct {
		name string
		into *[]byte
	}{
		{config.CAFile, &config.CAData},
		{config.CertFile, &config.CertData},
		{config.KeyFile, &config.KeyData},
		{config.BearerTokenFile, &token},
	} {
		if err := take(f.name, f.into); err != nil {
			return nil, nil, err
		}
	}
	config.CAFile, config.CertFile, config.KeyFile, config.BearerTokenFile = "", "", "", ""
	config.BearerToken = string(bytes.TrimSpace(token))
	return config, read, nil
}
