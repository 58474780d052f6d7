package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/auth"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // It registers itself.
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// accessName is the name of our access control in the registry's configuration.
const accessName = "serviceaccount"

// serveFlags are the flags of serve.
type serveFlags struct {
	address, dir, cert, key string
	kubeconfig, audience    string
	offline                 bool
	ahead                   time.Duration
}

func parseServe(args []string) (serveFlags, error) {
	var f serveFlags
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&f.address, "address", "127.0.0.1:0", "Address to listen on; it is printed")
	flags.StringVar(&f.dir, "dir", "", "Directory of the images")
	flags.StringVar(&f.cert, "cert", "", "File of the serving certificate")
	flags.StringVar(&f.key, "key", "", "File of its key")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "File of the connection to the cluster whose tokens are accepted")
	flags.StringVar(&f.audience, "audience", "", "Audience that tokens must have")
	flags.BoolVar(&f.offline, "offline", false, "Check tokens by the cluster's published keys instead of by TokenReview")
	flags.DurationVar(&f.ahead, "ahead", 0, "How far the clock is ahead, with --offline")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.dir == "" || f.audience == "" {
		return f, errors.New("serve needs --dir and --audience")
	}
	return f, nil
}

// serve serves a registry until ctx ends.
func serve(ctx context.Context, args []string) error {
	f, err := parseServe(args)
	if err != nil {
		return err
	}
	accepted, err := f.check(ctx)
	if err != nil {
		return err
	}
	app, err := newApp(ctx, f.dir, accepted)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, listener.Addr())
	server := &http.Server{Handler: app, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(listener, f.cert, f.key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// check returns how tokens are checked.
func (f serveFlags) check(ctx context.Context) (check, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if f.offline {
		return byKeys(ctx, clients, f.audience, f.ahead)
	}
	return byReview(clients, f.audience), nil
}

// newApp returns a registry whose images are in a directory.
func newApp(ctx context.Context, dir string, accepted check) (http.Handler, error) {
	logrus.SetLevel(logrus.ErrorLevel)
	err := auth.Register(accessName, func(map[string]any) (auth.AccessController, error) { return controller{accepted}, nil })
	if err != nil {
		return nil, err
	}
	config := &configuration.Configuration{
		Storage: configuration.Storage{"filesystem": configuration.Parameters{"rootdirectory": dir}},
		Auth:    configuration.Auth{accessName: configuration.Parameters{}},
	}
	config.HTTP.Secret = rand.Text()
	config.Catalog.MaxEntries = 1000
	return handlers.NewApp(ctx, config), nil
}
