package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// keyPendingPurpose is the key of the purpose of a pending request.
const keyPendingPurpose = "purpose"

// purpose is the purpose of a request.
type purpose string

const (
	// joining is requested with the bootstrap credential, and an administrator
	// approves it.
	joining purpose = "join"
	// renewal is requested with the credential that it replaces.
	renewal purpose = "renewal"
)

// matches reports whether a stored request serves the purpose. A request to join never
// becomes a renewal; a renewal may still be approved automatically for a join.
func (p purpose) matches(stored driver.Data) bool {
	return p == joining || string(stored[keyPendingPurpose]) == string(renewal)
}

// errNoBootstrap is returned without a bootstrap kubeconfig.
var errNoBootstrap = errors.New("no bootstrap kubeconfig")

// store reads and writes the persistent state of the agent: Secrets in its namespace.
// It reads from the API server, because a cache could show a request that is done.
type store struct {
	namespace string
	names     Names
	secrets   Secrets
	reader    client.Reader
	writer    client.Client
	log       logr.Logger
}

// get returns the data of a Secret, nil if there is none.
func (s *store) get(ctx context.Context, name string) (driver.Data, error) {
	var secret corev1.Secret
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	return secret.Data, nil
}

// put writes a credential to the Secret. It retains keys of others, removes the
// credential of another driver, and does not write a Secret that does not differ.
func (s *store) put(ctx context.Context, name string, data driver.Data) error {
	return s.write(ctx, name, func(old driver.Data) driver.Data {
		merged := maps.Clone(old)
		for _, key := range names.CredentialKeys() {
			delete(merged, key)
		}
		maps.Copy(merged, data)
		return merged
	})
}

// write changes the data of the Secret.
func (s *store) write(ctx context.Context, name string, change func(driver.Data) driver.Data) error {
	var secret corev1.Secret
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: change(driver.Data{})}
		if err := s.writer.Create(ctx, &secret); err != nil {
			return fmt.Errorf("create Secret %s: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("get Secret %s: %w", name, err)
	}
	if secret.Data == nil {
		secret.Data = driver.Data{}
	}
	changed := change(secret.Data)
	if apiequality.Semantic.DeepEqual(driver.Data(secret.Data), changed) {
		return nil
	}
	secret.Data = changed
	if err := s.writer.Update(ctx, &secret); err != nil {
		return fmt.Errorf("update Secret %s: %w", name, err)
	}
	return nil
}

// annotation returns the value of an annotation of a Secret, empty if there is none.
func (s *store) annotation(ctx context.Context, name, key string) (string, error) {
	var secret corev1.Secret
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &secret); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Secret %s: %w", name, err)
	}
	return secret.Annotations[key], nil
}

// annotate sets an annotation of a Secret, if there is one.
func (s *store) annotate(ctx context.Context, name, key, value string) error {
	var secret corev1.Secret
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("get Secret %s: %w", name, err)
	}
	if secret.Annotations[key] == value {
		return nil
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
	if err := s.writer.Update(ctx, &secret); err != nil {
		return fmt.Errorf("update Secret %s: %w", name, err)
	}
	return nil
}

// pending returns the stored pending data for hub and a purpose, nil if there is none.
func (s *store) pending(ctx context.Context, hub kubeconfig.Hub, p purpose) (driver.Data, error) {
	data, err := s.get(ctx, names.PendingCredentialSecret)
	if err != nil || string(data[names.KeyPendingHub]) != hub.Digest() || !p.matches(data) {
		return nil, err // The request was created on another hub or for another purpose.
	}
	delete(data, names.KeyPendingHub)
	delete(data, keyPendingPurpose)
	return data, nil
}

// setPending stores pending data for hub.
func (s *store) setPending(ctx context.Context, hub kubeconfig.Hub, p purpose, data driver.Data) error {
	data = maps.Clone(data)
	data[names.KeyPendingHub] = []byte(hub.Digest())
	data[keyPendingPurpose] = []byte(p)
	return s.write(ctx, names.PendingCredentialSecret, func(driver.Data) driver.Data { return data })
}

// dropPending deletes the pending data.
func (s *store) dropPending(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: names.PendingCredentialSecret}}
	if err := client.IgnoreNotFound(s.writer.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s: %w", names.PendingCredentialSecret, err)
	}
	return nil
}

// dropInstalled deletes pending data whose credential is stored already, which a
// process that crashed between the two writes left. Keys that both have are equal then.
func (s *store) dropInstalled(ctx context.Context, stored driver.Data) error {
	pending, err := s.get(ctx, names.PendingCredentialSecret)
	if err != nil {
		return err
	}
	common := 0
	for _, key := range names.CredentialKeys() {
		value, ok := pending[key]
		if !ok {
			continue
		}
		if !slices.Equal(value, stored[key]) {
			return nil
		}
		common++
	}
	if common == 0 {
		return nil
	}
	return s.dropPending(ctx)
}

// bootstrap returns the bootstrap kubeconfig: that of the Secret, or without a Secret
// that of the file.
func (s *store) bootstrap(ctx context.Context) (*kubeconfig.Hub, error) {
	data, err := s.get(ctx, s.secrets.Bootstrap)
	if err != nil {
		return nil, err
	}
	raw := data[names.KeyKubeconfig]
	if data == nil && s.secrets.BootstrapFile != "" {
		raw, err = os.ReadFile(s.secrets.BootstrapFile)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read the bootstrap kubeconfig: %w", err)
		}
	}
	if len(raw) == 0 {
		return nil, errNoBootstrap
	}
	hub, err := kubeconfig.ParseHub(raw)
	if err != nil {
		return nil, err
	}
	return &hub, nil
}

// bootstrapDir returns the directory of relative file names in the bootstrap
// kubeconfig.
func (s *store) bootstrapDir() string { return filepath.Dir(s.secrets.BootstrapFile) }
