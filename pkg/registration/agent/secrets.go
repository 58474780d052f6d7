package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// secretReconciler wakes the agent when a kubeconfig Secret changes, and copies the
// hub kubeconfig Secret to files.
type secretReconciler struct {
	agent  *Agent
	reader client.Reader
}

func (r *secretReconciler) setup(mgr ctrl.Manager) error {
	secrets := r.agent.config.Secrets
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == r.agent.config.Namespace && slices.Contains([]string{secrets.Bootstrap, secrets.Hub}, o.GetName())
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.secrets").
		For(&corev1.Secret{}, builder.WithPredicates(ours)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *secretReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.agent.secrets.signal()
	config := r.agent.config.Secrets
	if req.Name != config.Hub || config.HubDir == "" {
		return ctrl.Result{}, nil
	}
	var secret corev1.Secret
	if err := r.reader.Get(ctx, req.NamespacedName, &secret); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, mirror(config.HubDir, secret.Data)
}

// mirrored returns the names of the files of a mirror; no other file is removed.
func mirrored() []string {
	return append([]string{names.KeyKubeconfig, names.KeyClusterName, names.KeyAgentName}, names.CredentialKeys()...)
}

// mirror writes data to files in dir, for the work agent and for administrators. Only
// the owner can read the directory, and each file is replaced atomically. The
// kubeconfig, which refers to the others, is written last and removed first.
func mirror(dir string, data driver.Data) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the hub kubeconfig directory: %w", err)
	}
	// A mounted directory may have another owner; the files have the right mode.
	_ = os.Chmod(dir, 0o700) //nolint:gosec // a directory needs the execute bit
	if len(data[names.KeyKubeconfig]) == 0 {
		return unmirror(dir, nil)
	}
	files := slices.Sorted(maps.Keys(data))
	files = slices.DeleteFunc(files, func(name string) bool { return name == names.KeyKubeconfig })
	for _, name := range append(files, names.KeyKubeconfig) {
		if err := writeFile(dir, name, data[name]); err != nil {
			return err
		}
	}
	return unmirror(dir, data)
}

// unmirror removes the files that are not in data.
func unmirror(dir string, data driver.Data) error {
	var errs []error
	for _, name := range mirrored() {
		if _, ok := data[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeFile replaces a file atomically, readable by its owner only.
func writeFile(dir, name string, content []byte) error {
	// A key of a Secret has no slash, but can be "." or "..".
	path := filepath.Join(dir, filepath.Base(name))
	if filepath.Dir(path) != filepath.Clean(dir) {
		return nil
	}
	if old, err := os.ReadFile(path); err == nil && slices.Equal(old, content) {
		return nil
	}
	if err := atomicfile.Write(path, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
