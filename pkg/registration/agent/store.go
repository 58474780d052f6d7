package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

const (
	// keyPendingHub ties pending data to the hub that they were made for.
	keyPendingHub = "hub"
	// keyPendingPurpose says what the request is for.
	keyPendingPurpose = "purpose"
)

// purpose is what a request is for.
type purpose string

const (
	// joining is asked for with the bootstrap credential and waits for a person.
	joining purpose = "join"
	// renewal is asked for with the credential that it replaces.
	renewal purpose = "renewal"
)

// takes reports whether a stored request serves the purpose. One to join is no
// renewal, whatever became of the stored credential meanwhile; one to renew may
// still be approved without a person.
func (p purpose) takes(stored driver.Data) bool {
	return p == joining || string(stored[keyPendingPurpose]) == string(renewal)
}

// errNoBootstrap says that there is no bootstrap kubeconfig.
var errNoBootstrap = errors.New("no bootstrap kubeconfig")

// store reads and writes what the agent must not forget: Secrets in its
// namespace. It reads live: a cache that lags would show a request that is
// already done.
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

// put makes the Secret hold a credential beside what others put there; nothing
// remains of a credential of another driver. Nothing is written when nothing
// differs.
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

// write makes the Secret hold what change makes of its data.
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

// pending returns the stored pending data for hub that serve a purpose, nil if
// there are none.
func (s *store) pending(ctx context.Context, hub kubeconfig.Hub, p purpose) (driver.Data, error) {
	data, err := s.get(ctx, names.PendingCredentialSecret)
	if err != nil || string(data[keyPendingHub]) != hubDigest(hub) || !p.takes(data) {
		// What was asked of another hub is worth nothing on this one.
		return nil, err
	}
	delete(data, keyPendingHub)
	delete(data, keyPendingPurpose)
	return data, nil
}

// setPending stores pending data for hub.
func (s *store) setPending(ctx context.Context, hub kubeconfig.Hub, p purpose, data driver.Data) error {
	data = maps.Clone(data)
	data[keyPendingHub] = []byte(hubDigest(hub))
	data[keyPendingPurpose] = []byte(p)
	return s.write(ctx, names.PendingCredentialSecret, func(driver.Data) driver.Data { return data })
}

// dropPending forgets the pending data.
func (s *store) dropPending(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: names.PendingCredentialSecret}}
	if err := client.IgnoreNotFound(s.writer.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s: %w", names.PendingCredentialSecret, err)
	}
	return nil
}

// dropInstalled forgets pending data whose credential is stored already: a
// crash came between storing the one and forgetting the other. What pending data
// and a credential have in common is the same in both.
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

func hubDigest(hub kubeconfig.Hub) string {
	h := sha256.New()
	for _, part := range []string{hub.ClusterName, hub.Cluster.Server, hub.Cluster.ProxyURL, string(hub.Cluster.CertificateAuthorityData)} {
		_, _ = h.Write([]byte(part + "\x00")) // A hash never fails to write.
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// bootstrap returns the bootstrap kubeconfig: the Secret's, which is newer than
// a mounted file, or where there is no Secret the file's.
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

// bootstrapDir is where relative files of the bootstrap kubeconfig are.
func (s *store) bootstrapDir() string { return filepath.Dir(s.secrets.BootstrapFile) }
