package join

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/clusterid"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// lookTimeout bounds the look for what no flag says.
const lookTimeout = 5 * time.Second

// complete turns the flags into values, and reads only a name that no flag gives from
// the cluster. It reports all mistakes at once, and prompts for missing values on a
// terminal.
func (o *options) complete(cmd *cobra.Command) (join.Plan, error) {
	o.refresh = o.refresh || o.rotate
	p := join.Plan{Change: o.change(), ChangeHub: o.changeHub, Internal: o.hub.internal, TokenLife: time.Duration(o.wait.Timeout), Until: o.until()}
	if err := o.ask(cmd.Context()); err != nil {
		return p, err
	}
	var errs []error
	collect := func(err error) { errs = append(errs, err) }
	var err error
	p.Agent.TakeOver, err = o.takeOverOf(cmd)
	collect(err)
	p.Agent.Workload, err = o.workload.Value()
	collect(err)
	p.Agent.Registration, err = o.registration.value()
	collect(err)
	p.Agent.Registration.FeatureGates, err = o.gates.Value()
	collect(err)
	p.Agent.ClusterName = o.registration.cluster
	p.Agent.Work, err = o.work.value(cmd)
	collect(err)
	if cmd.Flags().Changed(flagCertSeconds) {
		p.Agent.Registration.CertificateSeconds = &o.registration.certSeconds
	}
	if cmd.Flags().Changed(flagPublishIssuer) {
		p.Agent.PublishIssuer = &o.registration.publishIssuer
	}
	p.Endpoint, err = o.endpoint()
	collect(err)
	collect(o.rendering.Check(o.env))
	if o.hub.token != "" || !o.hub.oneShot() && !o.keepsHub() && !o.rendering.SkipSecrets {
		p.Token, err = bootstrap.ParseToken(o.hub.token)
		collect(err)
	}
	if o.registration.warning != "" {
		o.env.Warn("%s", o.registration.warning)
	}
	if err := errors.Join(errs...); err != nil {
		return p, cli.Usagef("%v", err)
	}
	return p, nil
}

// change is what the flags want of an agent that is installed.
func (o *options) change() join.Change {
	switch {
	case o.rotate:
		return join.Rotate
	case o.refresh:
		return join.Refresh
	}
	return join.Repair
}

// until is what the command waits for. Scripts for clusteradm accept the cluster after join
// has ended.
func (o *options) until() join.Until {
	clusteradm := o.env.Name == cli.Clusteradm
	switch {
	case o.wait.Enabled && clusteradm:
		return join.Requested
	case o.wait.Enabled:
		return join.Joined
	case clusteradm:
		return join.Installed
	}
	return join.KeyMade
}

// keepsHub reports whether the agent keeps the hub that it has.
func (o *options) keepsHub() bool { return o.refresh || o.takeOver.Enabled }

// ask fills in what no flag gave. A refresh or a take-over keeps what is not given.
func (o *options) ask(ctx context.Context) error {
	if err := o.readToken(); err != nil {
		return err
	}
	if o.rotate && !o.hub.oneShot() && o.hub.token == "" {
		// The one that the agent has may end before the hub accepts the new key.
		return &cli.Explained{
			Problem: "--rotate needs a bootstrap token, which the agent uses until the hub has accepted its new key",
			Try:     "on the hub: " + o.env.Elsewhere("get token -o token") + "; give it with --hub-token-file, or give --hub-context instead", Code: cli.CodeUsage,
		}
	}
	if o.keepsHub() {
		return nil
	}
	if o.registration.cluster == "" {
		o.registration.cluster = o.openShiftID(ctx)
	}
	pin := ""
	if err := o.env.Ask(o.questions(&pin)...); err != nil {
		return err
	}
	if pin != "" {
		o.hub.hashes = []string{pin}
	}
	return nil
}

// readToken takes the bootstrap token from where it was not given as a flag.
func (o *options) readToken() (err error) {
	switch {
	case o.hub.token != "" || o.hub.oneShot():
	case o.hub.tokenFile != "":
		if o.hub.token, err = o.env.ReadSecret(o.hub.tokenFile); err != nil {
			return cli.Usagef("--hub-token-file: %v", err)
		}
	default:
		o.hub.token = o.env.Getenv(fleet.TokenVariable)
	}
	return nil
}

// questions are about what is missing. The answer about the CA goes to pin.
func (o *options) questions(pin *string) []cli.Question {
	var questions []cli.Question
	questions = append(questions, o.registration.drivers.questions(o.env.Kube)...)
	if o.registration.cluster == "" {
		questions = append(questions, cli.Question{Flag: "cluster-name", Text: "Name of this cluster on the hub:", Answer: &o.registration.cluster})
	}
	if o.hub.oneShot() || o.rendering.SkipSecrets {
		return questions
	}
	if o.hub.server == "" {
		questions = append(questions, cli.Question{Flag: "hub-apiserver", Text: "Address of the hub's API server:", Initial: "https://", Answer: &o.hub.server})
		if o.hub.caFile == "" && len(o.hub.hashes) == 0 {
			questions = append(questions, cli.Question{
				Flag: "hub-ca-hash", Text: "Hash of the hub's CA (sha256:...; empty if a public authority signs its certificate):",
				Optional: true, Answer: pin,
			})
		}
	}
	if o.hub.token == "" {
		questions = append(questions, cli.Question{Flag: "hub-token", Text: "Bootstrap token of the hub:", Secret: true, Answer: &o.hub.token})
	}
	return questions
}

// openShiftID is the id of the cluster if that is an OpenShift cluster, which is
// its name then; empty if it is none or cannot be asked.
func (o *options) openShiftID(ctx context.Context) string {
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return "" // No cluster is looked at.
	}
	c, err := o.env.Kube.Client()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	id, err := clusterid.OpenShift(ctx, c)
	if err != nil || names.ValidateClusterName(id) != nil {
		return ""
	}
	o.env.Say("Joining as %s, the id of this OpenShift cluster; --cluster-name gives it another name.", id)
	return id
}

// oneShot reports whether the hub's administrator runs the command.
func (h *hubFlags) oneShot() bool { return h.admin != (cli.Context{}) }

// endpoint is the hub that the flags name; a refresh may name none.
func (o *options) endpoint() (bootstrap.Endpoint, error) {
	h := &o.hub
	e := bootstrap.Endpoint{Server: h.server, ProxyURL: h.proxyURL}
	var errs []error
	if h.server != "" || !h.oneShot() && !o.keepsHub() && !o.rendering.SkipSecrets {
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

func (r *registrationFlags) value() (agent.Registration, error) {
	var errs []error
	out := agent.Registration{Labels: r.labels, Annotations: map[string]string{}}
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
	if err := metav1validation.ValidateLabels(r.labels, nil).ToAggregate(); err != nil {
		errs = append(errs, fmt.Errorf("--label: %w", err))
	}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if names.OfHub(key) {
			errs = append(errs, fmt.Errorf("--label: %s is set on the hub only, when the cluster has joined", key))
		}
	}
	var errDriver, errAddOns error
	out.Driver, errDriver = r.drivers.value()
	out.AddOns, errAddOns = r.addOnDriver()
	errs = append(errs, errDriver, errAddOns)
	if r.certSeconds != 0 && r.certSeconds < driver.MinClientCertSeconds {
		errs = append(errs, fmt.Errorf("--client-cert-expiration-seconds must be 0 or at least %d", driver.MinClientCertSeconds))
	}
	return out, errors.Join(errs...)
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
