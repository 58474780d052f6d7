package truststore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Flags choose a trust store: a local file, or a ConfigMap of the hub.
type Flags struct {
	File      string
	ConfigMap string
	// Hub is where the hub is if the connection flags name another cluster.
	Hub cli.Context
}

const defaultConfigMap = names.HubNamespace + "/" + names.TokenAuthorizer

// Again is how another command is told the same choice: empty, or flags with a
// space before them.
func (f *Flags) Again() string {
	switch {
	case f.File != "":
		return " --clusters-config " + f.File
	case f.ConfigMap != defaultConfigMap:
		return " --config-configmap " + f.ConfigMap
	}
	return ""
}

// AddTo registers the flags.
func (f *Flags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.File, "clusters-config", "", "the configuration file, instead of the hub's ConfigMap")
	cmd.Flags().StringVar(&f.ConfigMap, "config-configmap", defaultConfigMap, "the ConfigMap of the hub, as NAMESPACE/NAME")
	cmd.MarkFlagsMutuallyExclusive("clusters-config", "config-configmap")
}

// Store is where a configuration is kept.
type Store struct {
	env cli.Env
	// file is the local file; if empty, the ConfigMap key of the hub is used.
	file string
	key  client.ObjectKey
	hub  client.WithWatch
}

// Open returns the store that the flags choose. For a ConfigMap, the cluster of
// the connection flags must be a hub.
func (f *Flags) Open(env cli.Env) (*Store, error) {
	if f.File != "" {
		return &Store{env: env, file: f.File}, nil
	}
	namespace, name, ok := strings.Cut(f.ConfigMap, "/")
	if !ok || namespace == "" || name == "" {
		return nil, cli.Usagef("--config-configmap: %q is not NAMESPACE/NAME", f.ConfigMap)
	}
	hub, err := env.Kube.ClientFor(f.Hub)
	if err != nil {
		return nil, err
	}
	return &Store{env: env, key: client.ObjectKey{Namespace: namespace, Name: name}, hub: hub}, fleet.RequireHub(env, hub)
}

// String names the store: a path, or "ConfigMap NAMESPACE/NAME".
func (s *Store) String() string {
	if s.file != "" {
		return s.file
	}
	return "ConfigMap " + s.key.String()
}

// Hub is the client of the hub, nil for a file.
func (s *Store) Hub() client.WithWatch { return s.hub }

// Options are those with which the store's documents are read. On the hub the
// clusters' published keys are the default.
func (s *Store) Options() config.Options {
	opts := config.Options{File: s.String(), Dir: filepath.Dir(s.file)}
	if s.file == "" {
		opts.Hub, opts.Dir = true, ""
		opts.Self = policy.Account{Namespace: s.key.Namespace, Name: names.TokenAuthorizer}
	}
	return opts
}

// Read returns the document. A ConfigMap that does not exist is an empty one; a
// file that does not is an error.
func (s *Store) Read(ctx context.Context) (*Document, error) {
	if s.file != "" {
		if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
			return nil, cli.NotFoundf("check the path of --clusters-config", "there is no file %s", s.file)
		}
	}
	data, _, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	return s.parse(data)
}

// Config returns the configuration, read with opts.
func (s *Store) Config(ctx context.Context, opts config.Options) (*config.Config, error) {
	doc, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	return doc.Config(opts)
}

func (s *Store) parse(data []byte) (*Document, error) {
	d, err := ParseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return d, nil
}

// load reads the data and, from the hub, the object that holds it.
func (s *Store) load(ctx context.Context) ([]byte, *corev1.ConfigMap, error) {
	if s.file != "" {
		data, err := cli.ReadFile(s.file)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return data, nil, err
	}
	cm := &corev1.ConfigMap{}
	err := s.hub.Get(ctx, s.key, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	return []byte(cm.Data[names.TokenAuthorizerConfigKey]), cm, err
}

// Edit changes the document: read, change, check, write. It reports whether
// anything had to be written, and returns the document as it is now; a dry run
// writes nothing. When somebody else writes meanwhile, change is called again
// with what they wrote. A change after which the document does not load is
// refused with all that is wrong.
func (s *Store) Edit(ctx context.Context, change func(*Document) error) (*Document, bool, error) {
	// Each round somebody gets through.
	patience := wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5}
	var (
		doc     *Document
		changed bool
	)
	err := retry.OnError(patience, contended, func() error {
		var err error
		doc, changed, err = s.edit(ctx, change)
		return err
	})
	return doc, changed, err
}

// errContended says that the document was changed while we changed it.
var errContended = errors.New("it was changed by somebody else at the same time")

func contended(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errContended)
}

func (s *Store) edit(ctx context.Context, change func(*Document) error) (*Document, bool, error) {
	before, cm, err := s.load(ctx)
	if err != nil {
		return nil, false, err
	}
	doc, err := s.parse(before)
	if err != nil {
		return nil, false, err
	}
	was, err := doc.Bytes()
	open := doc.Seed()
	if err == nil {
		err = change(doc)
	}
	if err != nil {
		return nil, false, err
	}
	if !open {
		doc.keepPolicy()
	}
	after, err := doc.Bytes()
	if err != nil || bytes.Equal(was, after) {
		return doc, false, err
	}
	if err := s.check(was, after); err != nil {
		return nil, false, err
	}
	if s.file != "" {
		return doc, true, s.writeFile(before, after)
	}
	return doc, true, s.writeConfigMap(ctx, cm, after)
}

// check refuses what does not load. A removal of the last cluster is fine: a
// file without any is what one begins with.
func (s *Store) check(was, after []byte) error {
	opts := s.Options()
	_, err := config.Parse(after, opts)
	if err == nil {
		return nil
	}
	if doc, parseErr := ParseDocument(after); parseErr == nil && len(doc.Clusters()) == 0 {
		return nil
	}
	if _, before := config.Parse(was, opts); before != nil && len(was) > 0 {
		return &cli.Explained{
			Problem: "the configuration is not valid as it is, and would not be with this change",
			Try:     "mend it first: " + s.env.Name + " exchange policy lint shows what is wrong", Code: cli.CodeBlocked, Cause: err,
		}
	}
	return &cli.Explained{Problem: "the configuration would not be valid with this change", Code: cli.CodeBlocked, Cause: err}
}

func (s *Store) writeConfigMap(ctx context.Context, cm *corev1.ConfigMap, data []byte) error {
	if s.env.Kube.DryRun() == cli.DryRunClient {
		return nil
	}
	owner := client.FieldOwner(install.FieldManager)
	if cm == nil {
		return s.hub.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name, Labels: map[string]string{"app": names.TokenAuthorizer}},
			Data:       map[string]string{names.TokenAuthorizerConfigKey: string(data)},
		}, owner)
	}
	base := client.MergeFromWithOptions(cm.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[names.TokenAuthorizerConfigKey] = string(data)
	return s.hub.Patch(ctx, cm, base, owner)
}

// writeFile replaces the file, with its mode, unless it has changed meanwhile.
func (s *Store) writeFile(before, data []byte) error {
	if s.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	path, mode := s.file, fs.FileMode(0o600)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // A link stays one.
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if now, err := cli.ReadFile(path); err == nil && !bytes.Equal(now, before) {
		return errContended
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", s.file, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.file, err)
	}
	return nil
}
