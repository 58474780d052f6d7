package legacytoken

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// ErrOtherBackup says that a file holds the backup of another Secret.
var ErrOtherBackup = errors.New("has another backup; choose another directory")

// BackupFile is where the backup of a token Secret is, below a directory.
func BackupFile(dir string, t *Token) string { return filepath.Join(dir, t.Namespace, t.Name+".yaml") }

// backUp writes a token Secret to its file, which only the user can read. The
// Secret that is made from it has the same token, and is quarantined as well.
func backUp(ctx context.Context, c client.Client, t *Token, dir string) error {
	var secret corev1.Secret
	if err := c.Get(ctx, t.Key(), &secret); err != nil {
		return changed(err)
	}
	if secret.UID != t.uid || secret.ResourceVersion != t.version {
		return ErrChanged
	}
	data, err := yaml.Marshal(backup(&secret))
	if err != nil {
		return fmt.Errorf("encode the backup of %s: %w", t, err)
	}
	path := BackupFile(dir, t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("back up %s: %w", t, err)
	}
	present, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(present, data): // A run that was killed wrote it.
		return nil
	case err == nil:
		return fmt.Errorf("back up %s: %s %w", t, path, ErrOtherBackup)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("back up %s: %w", t, err)
	}
	if err := atomicfile.Write(path, data); err != nil {
		return fmt.Errorf("back up %s: %w", t, err)
	}
	return nil
}

// backup returns a Secret without the fields that the API server sets. It omits owners:
// the garbage collector would delete the Secret if they are gone. It also omits the
// annotation of kubectl apply, which can contain the token once more.
func backup(secret *corev1.Secret) *corev1.Secret {
	annotations := map[string]string{}
	for key, value := range secret.Annotations {
		if key != corev1.LastAppliedConfigAnnotation {
			annotations[key] = value
		}
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels, Annotations: annotations,
		},
		Type: secret.Type, Immutable: secret.Immutable, Data: secret.Data,
	}
}
