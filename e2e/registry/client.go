package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	kubeauth "github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Size of a pushed image.
const (
	layers    = 2
	layerSize = 1 << 10
)

// clientFlags are the flags of push and pull.
type clientFlags struct {
	ca, username                   string
	kubeconfig, namespace, account string
	image                          name.Reference
}

func parseClient(command string, args []string) (clientFlags, error) {
	var f clientFlags
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&f.ca, "ca", "", "File of the CA of the registry's certificate")
	flags.StringVar(&f.username, "username", "", "User name; the password is read from stdin")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "File of the connection to a cluster with pull secrets")
	flags.StringVar(&f.namespace, "namespace", "", "Namespace of --service-account")
	flags.StringVar(&f.account, "service-account", "", "ServiceAccount whose imagePullSecrets are used, as a kubelet does for its pods")
	err := flags.Parse(args)
	if err == nil && flags.NArg() != 1 {
		err = errors.New("name one image")
	}
	if err == nil {
		f.image, err = name.ParseReference(flags.Arg(0), name.StrictValidation)
	}
	return f, err
}

// options are those of every request.
func (f clientFlags) options(ctx context.Context) ([]remote.Option, error) {
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", f.ca)
	}
	keys, err := f.keychain(ctx)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuthFromKeychain(keys)}, nil
}

// keychain holds the credentials: one from stdin, or those of the pull secrets of
// a ServiceAccount.
func (f clientFlags) keychain(ctx context.Context) (authn.Keychain, error) {
	if f.account == "" {
		password, err := io.ReadAll(os.Stdin)
		return fixed{authn.Basic{Username: f.username, Password: strings.TrimSpace(string(password))}}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return kubeauth.New(ctx, clients, kubeauth.Options{Namespace: f.namespace, ServiceAccountName: f.account})
}

// fixed is one credential for every registry.
type fixed struct{ basic authn.Basic }

// Resolve implements authn.Keychain.
func (f fixed) Resolve(authn.Resource) (authn.Authenticator, error) { return &f.basic, nil }

// push pushes a random image.
func push(f clientFlags, options []remote.Option) (v1.Image, error) {
	image, err := random.Image(layerSize, layers)
	if err != nil {
		return nil, err
	}
	return image, remote.Write(f.image, image, options...)
}

// pull pulls an image and checks all of its content.
func pull(f clientFlags, options []remote.Option) (v1.Image, error) {
	image, err := remote.Image(f.image, options...)
	if err != nil {
		return nil, err
	}
	return image, validate.Image(image)
}

// client does something about an image and prints its digest.
func client(ctx context.Context, command string, args []string, do func(clientFlags, []remote.Option) (v1.Image, error)) error {
	f, err := parseClient(command, args)
	if err != nil {
		return err
	}
	options, err := f.options(ctx)
	if err != nil {
		return err
	}
	image, err := do(f, options)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, digest)
	return nil
}
