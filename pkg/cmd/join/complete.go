package join

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// minSeconds is the shortest life of a certificate that the API server gives
// out.
const minSeconds = 600

// plan is what the flags ask for.
type plan struct {
	klusterlet install.Klusterlet
	endpoint   bootstrap.Endpoint
	token      bootstrap.Token
	// oneShot says that the hub's administrator runs the command.
	oneShot bool
}

// complete turns the flags into values, without any network. All mistakes are
// reported at once; what is missing is asked for where somebody can answer.
func (o *options) complete(cmd *cobra.Command) (plan, error) {
	if err := o.compat.Check(cmd); err != nil {
		return plan{}, err
	}
	p := plan{oneShot: o.hub.oneShot()}
	if err := o.ask(); err != nil {
		return p, err
	}
	var errs []error
	collect := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	p.klusterlet.Workload, err = o.workload.Value()
	collect(err)
	p.klusterlet.Registration, err = o.registration.value()
	collect(err)
	p.klusterlet.Registration.FeatureGates, err = o.gates.Value()
	collect(err)
	p.klusterlet.ClusterName = o.registration.cluster
	if cmd.Flags().Changed(flagPublishIssuer) {
		p.klusterlet.PublishIssuer = &o.registration.publishIssuer
	}
	p.endpoint, err = o.hub.endpoint()
	collect(err)
	if !p.oneShot {
		p.token, err = bootstrap.ParseToken(o.hub.token)
		collect(err)
	}
	if o.force {
		o.skip = install.Checks()
	}
	if o.registration.warning != "" {
		o.env.Warn("%s", o.registration.warning)
	}
	if len(errs) > 0 {
		return p, cli.Usagef("%v", errors.Join(errs...))
	}
	return p, nil
}

// ask fills in what no flag gave.
func (o *options) ask() error {
	var err error
	if o.registration.cluster == "" && !o.refresh {
		if o.registration.cluster, err = o.env.Ask("cluster-name", "Name of this cluster on the hub:", ""); err != nil {
			return err
		}
	}
	if o.hub.oneShot() {
		return nil
	}
	if o.hub.server == "" {
		if o.hub.server, err = o.env.Ask("hub-apiserver", "Address of the hub's API server:", "https://"); err != nil {
			return err
		}
	}
	switch {
	case o.hub.token != "":
	case o.hub.tokenFile != "":
		if o.hub.token, err = o.env.ReadSecret(o.hub.tokenFile); err != nil {
			return cli.Usagef("--hub-token-file: %v", err)
		}
	default:
		if o.hub.token = o.env.Getenv(TokenVariable); o.hub.token == "" {
			o.hub.token, err = o.env.AskSecret("hub-token", "Join token:")
		}
	}
	return err
}

// oneShot reports whether the hub's administrator runs the command.
func (h *hubFlags) oneShot() bool { return h.admin != (cli.Context{}) }

func (h *hubFlags) endpoint() (bootstrap.Endpoint, error) {
	e := bootstrap.Endpoint{Server: h.server, ProxyURL: h.proxyURL}
	var errs []error
	if h.server != "" || !h.oneShot() {
		u, err := bootstrap.ParseServer(h.server)
		if err != nil {
			errs = append(errs, err)
		} else {
			e.Server = u.String()
		}
	}
	for _, text := range h.hashes {
		pin, err := bootstrap.ParseCAHash(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.Pins = append(e.Pins, pin)
	}
	for _, file := range []struct {
		flag, path string
		into       *[]byte
	}{{"ca-file", h.caFile, &e.CA}, {"proxy-ca-file", h.proxyCA, &e.ProxyCA}} {
		if file.path == "" {
			continue
		}
		data, err := cli.ReadFile(file.path)
		if err == nil {
			_, err = bootstrap.HashesOf(data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %s: %w", file.flag, file.path, err))
		}
		*file.into = data
	}
	return e, errors.Join(errs...)
}

func (r *registrationFlags) value() (install.Registration, error) {
	var errs []error
	out := install.Registration{CertificateSeconds: r.certSeconds, Labels: r.labels, Annotations: map[string]string{}}
	for key, value := range r.annotations {
		if !strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			key = names.AnnotationAgentPrefix + key
		}
		out.Annotations[key] = value
	}
	if r.cluster != "" {
		if err := names.ValidateClusterName(r.cluster); err != nil {
			errs = append(errs, fmt.Errorf("--cluster-name: %w", err))
		}
	}
	var err error
	if out.Driver, err = r.clusterDriver(); err != nil {
		errs = append(errs, err)
	}
	if r.certSeconds != 0 && r.certSeconds < minSeconds {
		errs = append(errs, fmt.Errorf("--client-cert-expiration-seconds must be 0 or at least %d", minSeconds))
	}
	if out.AddOns, err = r.addOnDriver(); err != nil {
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (r *registrationFlags) clusterDriver() (*operatorv1.RegistrationDriver, error) {
	switch {
	case r.driver == driver.AWSIRSA, r.driver == driver.GRPC:
		return nil, fmt.Errorf("--registration-auth: %s is not available in this release; use csr", r.driver)
	case r.hubARN != "" || r.managedARN != "":
		return nil, errors.New("--hub-cluster-arn and --managed-cluster-arn need --registration-auth=awsirsa")
	case r.grpcServer != "" || r.grpcCAFile != "":
		return nil, errors.New("--grpc-server and --grpc-ca-file need --registration-auth=grpc")
	case r.driver == "":
		return nil, nil
	}
	return &operatorv1.RegistrationDriver{AuthType: string(r.driver)}, nil
}

func (r *registrationFlags) addOnDriver() (*operatorv1.AddOnRegistrationDriver, error) {
	warning, err := flags.AddOnTokenSeconds("addon-token-expiration-seconds", r.addOnSeconds)
	r.warning = warning
	switch {
	case err != nil:
		return nil, err
	case r.addOnSeconds > 0 && r.addOns != addOnToken:
		return nil, errors.New("--addon-token-expiration-seconds needs --addon-kubeclient-registration-auth=token")
	case r.addOns == "":
		return nil, nil
	}
	out := &operatorv1.AddOnRegistrationDriver{AuthType: string(r.addOns)}
	if r.addOnSeconds > 0 {
		out.Token = &operatorv1.TokenConfig{ExpirationSeconds: r.addOnSeconds}
	}
	return out, nil
}
