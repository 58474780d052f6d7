package jwks_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// TestOneIssuerTwoClusters: the key that verifies names the cluster, because the
// API servers of several clusters can have one issuer.
func TestOneIssuerTwoClusters(t *testing.T) {
	t.Parallel()
	one, two, other := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES384)
	e := newEnv(t,
		inline(t, "cluster1", sharedIssuer, one), inline(t, "cluster2", sharedIssuer, two),
		inline(t, "cluster3", "https://three.example.com", other))
	e.verifies(t, sharedIssuer, one, "cluster1")
	e.verifies(t, sharedIssuer, two, "cluster2")
	e.refuses(t, sharedIssuer, other.ID, denial.UnknownKey)
	e.refuses(t, "https://elsewhere.example.com", one.ID, denial.UnknownIssuer)
	e.refuses(t, sharedIssuer+"/", one.ID, denial.UnknownIssuer)
	e.refuses(t, "", "", denial.UnknownIssuer)
	e.refuses(t, sharedIssuer, "", denial.UnknownKey)
	e.refuses(t, sharedIssuer, "../../etc/passwd", denial.UnknownKey)
	e.refuses(t, sharedIssuer, strings.Repeat("k", 1<<14), denial.UnknownKey)
	if err := e.Ready(); err != nil {
		t.Errorf("inline keys need no waiting: %v", err)
	}
}

// TestOneKeyIDTwoKeys: clusters may choose the same id for different keys.
func TestOneKeyIDTwoKeys(t *testing.T) {
	t.Parallel()
	one, two := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	one.ID, two.ID = "key-1", "key-1"
	e := newEnv(t, inline(t, "cluster1", sharedIssuer, one), inline(t, "cluster2", sharedIssuer, two))
	e.verifies(t, sharedIssuer, one, "cluster1")
	e.verifies(t, sharedIssuer, two, "cluster2")
}

func TestSharedKeyIsNoConfiguration(t *testing.T) {
	t.Parallel()
	one, shared := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, inline(t, "cluster1", sharedIssuer, one))
	again := *shared
	again.ID = "by another name"
	err := e.Configure([]jwks.Cluster{inline(t, "a", sharedIssuer, one, shared), inline(t, "b", sharedIssuer, &again)}, nil)
	x, ok := errors.AsType[*jwks.SharedKeyError](err)
	if !ok || !slices.Equal(x.Clusters, []string{"a", "b"}) {
		t.Errorf("Configure: %v; want an error that names both", err)
	}
	e.verifies(t, sharedIssuer, one, "cluster1")

	e.configure(t, inline(t, "a", "https://a.example.com", shared), inline(t, "b", "https://b.example.com", shared))
	e.verifies(t, "https://a.example.com", shared, "a")
	e.verifies(t, "https://b.example.com", shared, "b")
}

func TestConfigureRefuses(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	set := issuer.JWKS(t, key)
	uri := "https://keys.example.com/jwks"
	for name, test := range map[string]struct {
		clusters []jwks.Cluster
		want     string
	}{
		"no name":        {[]jwks.Cluster{{Issuer: "i", Source: jwks.Source{Inline: set}}}, "name is required"},
		"no issuer":      {[]jwks.Cluster{{Name: "c", Source: jwks.Source{Inline: set}}}, "issuer is required"},
		"no source":      {[]jwks.Cluster{{Name: "c", Issuer: "i"}}, "a source of keys is required"},
		"two sources":    {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{Inline: set, URI: uri}}}, "exactly one"},
		"twice":          {[]jwks.Cluster{inline(t, "c", "i", key), inline(t, "c", "j", key)}, "configured twice"},
		"http":           {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{URI: "http://keys.example.com"}}}, "https://"},
		"file URL":       {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{URI: "file:///etc/passwd"}}}, "https://"},
		"password":       {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{URI: "https://u:p@keys.example.com"}}}, "password"},
		"no discovery":   {[]jwks.Cluster{{Name: "c", Issuer: "kubernetes/serviceaccount", Source: jwks.Source{Discovery: &jwks.Discovery{}}}}, "https://"},
		"http discovery": {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{Discovery: &jwks.Discovery{URL: "http://a"}}}}, "https://"},
		"two CAs":        {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{URI: uri, CA: []byte("x"), CAFile: "y"}}}, "CA is given twice"},
		"two credentials": {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{
			URI: uri, Auth: jwks.Auth{TokenFile: "a", KubeconfigFile: "b"},
		}}}, "cannot both"},
		"CA of a file":    {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{File: "f", CAFile: "y"}}}, "for a URI and discovery only"},
		"everyone inline": {[]jwks.Cluster{inline(t, jwks.Everyone, "i", key)}, "published on the hub"},
		"everyone's pins": {[]jwks.Cluster{{Name: jwks.Everyone, Pins: []string{"a"}, Source: jwks.Source{Hub: true}}}, "no pins"},
		"no keys":         {[]jwks.Cluster{{Name: "c", Issuer: "i", Source: jwks.Source{Inline: []byte(`{"keys":[]}`)}}}, "no usable key"},
		"no pinned key":   {[]jwks.Cluster{{Name: "c", Issuer: "i", Pins: []string{"x"}, Source: jwks.Source{Inline: set}}}, "pinned"},
		"negative stale":  {[]jwks.Cluster{{Name: "c", Issuer: "i", StaleFor: -1, Source: jwks.Source{Inline: set}}}, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := jwks.New(jwks.Config{}).Configure(test.clusters, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Configure: %v; want %q", err, test.want)
			}
		})
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	a, b, c := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	set, err := jwk.Parse(issuer.JWKS(t, b))
	if err != nil {
		t.Fatal(err)
	}
	cluster := inline(t, "c1", sharedIssuer, a, b, c)
	cluster.Pins = []string{a.ID, set.Keys[0].Thumbprint}
	e := newEnv(t, cluster)
	e.verifies(t, sharedIssuer, a, "c1")
	e.verifies(t, sharedIssuer, b, "c1")
	e.refuses(t, sharedIssuer, c.ID, denial.UnknownKey)
	if status := e.status(t, "c1"); len(status.KeyIDs) != 2 || len(status.Ignored) != 1 {
		t.Errorf("status %+v", status)
	}
	moved := e.moved("c1")
	cluster.Pins = []string{a.ID}
	e.configure(t, cluster)
	e.refuses(t, sharedIssuer, b.ID, denial.UnknownKey)
	if !moved() {
		t.Error("a key that is no longer pinned leaves the generation")
	}
}

// TestReconfigure: what goes is gone at once, what stays is not touched.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	a, b := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	pa, pb := issuer.NewProvider(t, a), issuer.NewProvider(t, b)
	e := start(t, remote("a", sharedIssuer, pa), remote("b", sharedIssuer, pb))
	e.verifies(t, sharedIssuer, a, "a")
	movedA, movedB, fetches := e.moved("a"), e.moved("b"), pa.Fetches()

	e.configure(t, remote("a", sharedIssuer, pa))
	e.verifies(t, sharedIssuer, a, "a")
	if keys, err := e.Lookup(t.Context(), sharedIssuer, b.ID); err == nil {
		t.Errorf("a removed cluster's key is found: %v", keys)
	}
	if !movedB() || movedA() {
		t.Error("a removed cluster moves its own generation and no other")
	}
	e.configure(t, remote("a", sharedIssuer, pa), remote("b", sharedIssuer, pb))
	await.Success(t, patience, "the new cluster was tried", func(context.Context) error { return e.Ready() })
	e.verifies(t, sharedIssuer, b, "b")
	if movedA() {
		t.Error("a new cluster moves another's generation: every verified token would have to be verified again")
	}
	if got := pa.Fetches(); got > fetches+1 { // One for the key that was looked for in vain.
		t.Errorf("the source that stays was read %d more times", got-fetches)
	}

	moved := remote("a", sharedIssuer, pb)
	pb.Hold()
	e.configure(t, moved)
	if !movedA() {
		t.Error("keys from a source that is no longer configured leave the generation")
	}
	if keys := e.status(t, "a").KeyIDs; len(keys) != 0 {
		t.Errorf("keys of a source that is no longer configured: %v", keys)
	}
}

// TestSamePlace: another CA, credential or tolerance does not make the keys of
// a source other keys.
func TestSamePlace(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	cluster := remote("c1", sharedIssuer, p)
	e := start(t, cluster)
	moved := e.moved("c1")
	release := p.Hold()
	defer release()
	cluster.Source.CA = append(cluster.Source.CA, '\n')
	cluster.StaleFor = time.Hour
	e.configure(t, cluster)
	e.verifies(t, sharedIssuer, key, "c1")
	if moved() {
		t.Error("the generation moved without a key going")
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	a, b := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	name := filepath.Join(t.TempDir(), "jwks.json")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := jwks.Cluster{Name: "c1", Issuer: sharedIssuer, Source: jwks.Source{File: name}}
	e := start(t, cluster)
	e.refuses(t, sharedIssuer, a.ID, denial.KeysUnavailable)
	if e.status(t, "c1").Err == nil {
		t.Error("a missing file is not shown")
	}

	write(issuer.JWKS(t, a))
	e.pass(t, 12*time.Second, 6*time.Second)
	e.verifies(t, sharedIssuer, a, "c1")
	write(issuer.JWKS(t, a, b))
	e.verifies(t, sharedIssuer, b, "c1") // Without waiting: a key that is not known has the file read.
	write([]byte("broken"))
	e.pass(t, 6*time.Second, 6*time.Second)
	e.verifies(t, sharedIssuer, b, "c1")
	if e.status(t, "c1").Err == nil {
		t.Error("a broken file is not shown")
	}
	moved := e.moved("c1")
	write(issuer.JWKS(t, b))
	e.pass(t, 6*time.Second, 6*time.Second)
	e.refuses(t, sharedIssuer, a.ID, denial.UnknownKey)
	if !moved() {
		t.Error("a removed key leaves the generation")
	}
}

// TestLongestFile: a key set of the greatest length is read to its end, and a longer
// one is refused and not cut off.
func TestLongestFile(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	set := issuer.JWKS(t, key)
	for length, good := range map[int]bool{jwk.MaxBytes: true, jwk.MaxBytes + 1: false} {
		name := filepath.Join(t.TempDir(), "jwks.json")
		padded := append(bytes.Repeat([]byte(" "), length-len(set)), set...)
		if err := os.WriteFile(name, padded, 0o600); err != nil {
			t.Fatal(err)
		}
		e := start(t, jwks.Cluster{Name: "c1", Issuer: sharedIssuer, Source: jwks.Source{File: name}})
		if good {
			e.verifies(t, sharedIssuer, key, "c1")
		} else {
			e.refuses(t, sharedIssuer, key.ID, denial.KeysUnavailable)
		}
	}
}
