package drivertest

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// SetupType is the name of the fake driver in ClusterManagers and Klusterlets: their API
// takes three names, and this version has no driver of the third.
const SetupType driver.AuthType = "grpc"

// The fake driver's flags, of commands and of components.
const (
	FakeHubFlag = "fake-hub"
	FakeIDFlag  = "fake-id"
)

// fakeHubAnnotation, on a ClusterManager, names the hub to the fake driver.
const fakeHubAnnotation = "fake.open-cluster-management.io/hub"

// FakeSetup is the way of the fake driver from flags to what runs.
type FakeSetup struct {
	// Outside is the service where it grants.
	Outside *Outside
	// Certificate is described at FakeAgent.
	Certificate tls.Certificate
}

var _ driver.Identifier = FakeSetup{}

// Type implements driver.Setup.
func (FakeSetup) Type() driver.AuthType { return SetupType }

// Aliases implements driver.Setup.
func (FakeSetup) Aliases() []string { return []string{"fake"} }

// AccountKeys implements driver.Setup.
func (FakeSetup) AccountKeys() []string { return nil }

// fakeFlags are the flags of every command and component.
type fakeFlags struct {
	setup   FakeSetup
	hub, id string
}

// AddTo defines the flags.
func (f *fakeFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.hub, FakeHubFlag, "", "name of the hub, for the fake driver")
	flags.StringVar(&f.id, FakeIDFlag, "", "identifier of the cluster, for the fake driver")
}

// Complete takes nothing from a kubeconfig.
func (*fakeFlags) Complete(string) {}

// Missing implements driver.InitFlags.
func (f *fakeFlags) Missing() []driver.Question {
	if f.hub != "" {
		return nil
	}
	return []driver.Question{{Flag: FakeHubFlag, Text: "Name of the hub:", Answer: &f.hub}}
}

type fakeInitFlags struct{ fakeFlags }

// InitFlags implements driver.CommandSetup.
func (s FakeSetup) InitFlags() driver.InitFlags { return &fakeInitFlags{fakeFlags{setup: s}} }

// Settings implements driver.InitFlags.
func (f *fakeInitFlags) Settings(driver.InitFacts) (driver.HubSettings, error) {
	return fakeHub(f.hub), f.setup.ValidateHub(fakeHub(f.hub))
}

// fakeHub are the settings that name a hub.
func fakeHub(name string) driver.HubSettings {
	settings := driver.HubSettings{Driver: operatorv1.RegistrationDriverHub{AuthType: string(SetupType)}}
	if name != "" {
		settings.Annotations = map[string]string{fakeHubAnnotation: name}
	}
	return settings
}

type fakeJoinFlags struct{ fakeFlags }

// JoinFlags implements driver.CommandSetup.
func (s FakeSetup) JoinFlags() driver.JoinFlags { return &fakeJoinFlags{fakeFlags{setup: s}} }

// fakePrefix begins what a Klusterlet says to the fake driver. The API has no fields for
// it, and the ones that there are must have this form.
const fakePrefix = "arn:aws:eks:us-east-1:000000000000:cluster/"

// Settings implements driver.JoinFlags.
func (f *fakeJoinFlags) Settings() (operatorv1.RegistrationDriver, error) {
	settings := operatorv1.RegistrationDriver{
		AuthType: string(SetupType), AwsIrsa: &operatorv1.AwsIrsa{HubClusterArn: fakePrefix + f.hub, ManagedClusterArn: fakePrefix + f.id},
	}
	return settings, f.setup.ValidateAgent(settings)
}

type fakeAcceptFlags struct{ fakeFlags }

// AcceptFlags implements driver.CommandSetup.
func (s FakeSetup) AcceptFlags() driver.AcceptFlags { return &fakeAcceptFlags{fakeFlags{setup: s}} }

// Acceptance implements driver.AcceptFlags.
func (f *fakeAcceptFlags) Acceptance(driver.AuthType) (driver.Acceptance, error) {
	return driver.Acceptance{ID: f.id, Hub: fakeHub(f.hub)}, nil
}

// Retain implements driver.HubSetup.
func (FakeSetup) Retain(wanted, live driver.HubSettings) driver.HubSettings {
	if wanted.Annotations[fakeHubAnnotation] == "" {
		return fakeHub(live.Annotations[fakeHubAnnotation])
	}
	return wanted
}

// ValidateHub implements driver.HubSetup.
func (FakeSetup) ValidateHub(settings driver.HubSettings) error {
	if settings.Annotations[fakeHubAnnotation] == "" {
		return errors.New("the fake driver needs the name of the hub")
	}
	return nil
}

// HubRuntime implements driver.HubSetup.
func (FakeSetup) HubRuntime(settings driver.HubSettings) driver.Runtime {
	return driver.Runtime{Args: []string{"--" + FakeHubFlag + "=" + settings.Annotations[fakeHubAnnotation]}}
}

type fakeHubFlags struct{ fakeFlags }

// HubFlags implements driver.HubSetup.
func (s FakeSetup) HubFlags() driver.HubFlags { return &fakeHubFlags{fakeFlags{setup: s}} }

// Driver implements driver.HubFlags.
func (f *fakeHubFlags) Driver() (driver.Hub, func(context.Context, ctrl.Manager) error, error) {
	return &FakeGranter{Outside: f.setup.Outside, Name: SetupType, AdmitPrefix: "admitted-"}, nil, f.setup.ValidateHub(fakeHub(f.hub))
}

// Grants implements driver.HubSetup.
func (FakeSetup) Grants() driver.Grants {
	return driver.Grants{Kind: "fake entries", HubFlag: FakeHubFlag, HubOf: func(settings driver.HubSettings) string {
		return settings.Annotations[fakeHubAnnotation]
	}}
}

// ValidateAgent implements driver.AgentSetup.
func (s FakeSetup) ValidateAgent(settings operatorv1.RegistrationDriver) error {
	if s.ID(settings) == "" || s.HubID(settings) == "" {
		return errors.New("the fake driver needs the name of the hub and an identifier")
	}
	return nil
}

// AgentRuntime implements driver.AgentSetup.
func (s FakeSetup) AgentRuntime(settings operatorv1.RegistrationDriver) driver.Runtime {
	return driver.Runtime{Args: []string{
		"--registration-auth=" + string(SetupType), "--" + FakeHubFlag + "=" + s.HubID(settings), "--" + FakeIDFlag + "=" + s.ID(settings),
	}}
}

type fakeAgentFlags struct{ fakeFlags }

// AgentFlags implements driver.AgentSetup.
func (s FakeSetup) AgentFlags() driver.AgentFlags { return &fakeAgentFlags{fakeFlags{setup: s}} }

// Driver implements driver.AgentFlags.
func (f *fakeAgentFlags) Driver() (func(driver.Identity) driver.Agent, error) {
	return func(id driver.Identity) driver.Agent { return f.setup.agent(id, f.id) }, nil
}

func (s FakeSetup) agent(identity driver.Identity, id string) *FakeAgent {
	return &FakeAgent{Identity: identity, ID: id, Outside: s.Outside, Certificate: s.Certificate}
}

// HubID implements driver.AgentSetup.
func (FakeSetup) HubID(settings operatorv1.RegistrationDriver) string {
	if settings.AwsIrsa == nil {
		return ""
	}
	return strings.TrimPrefix(settings.AwsIrsa.HubClusterArn, fakePrefix)
}

// ID implements driver.Announcer.
func (FakeSetup) ID(settings operatorv1.RegistrationDriver) string {
	if settings.AwsIrsa == nil {
		return ""
	}
	return strings.TrimPrefix(settings.AwsIrsa.ManagedClusterArn, fakePrefix)
}

// Annotations implements driver.Announcer.
func (FakeSetup) Annotations() []string { return []string{FakeAnnotation} }

// AnnouncedID implements driver.Announcer.
func (s FakeSetup) AnnouncedID(cluster *clusterv1.ManagedCluster) (string, error) {
	plan, err := (&FakeGranter{}).Plan(cluster)
	if plan == nil || err != nil {
		return "", err
	}
	return plan.Key, nil
}

// Identify implements driver.Announcer.
func (s FakeSetup) Identify(cluster *clusterv1.ManagedCluster, hub driver.HubSettings) (*driver.Identified, error) {
	id, err := s.AnnouncedID(cluster)
	if id == "" || err != nil {
		return nil, err
	}
	return &driver.Identified{ID: id, Key: id, Trusted: []string{"trusted " + FakeRole(id) + " on " + hub.Annotations[fakeHubAnnotation]}}, nil
}

// Announce implements driver.Announcer.
func (s FakeSetup) Announce(cluster *clusterv1.ManagedCluster, id string, _ driver.HubSettings) error {
	s.agent(driver.Identity{}, id).Decorate(cluster)
	return nil
}

// Recorded implements driver.Grantor.
func (FakeSetup) Recorded(grant driver.Grant) (string, error) { return grant.Data["role"], nil }

// Hub implements driver.Grantor.
func (s FakeSetup) Hub(settings operatorv1.RegistrationDriver) driver.HubSettings {
	return fakeHub(s.HubID(settings))
}

// Prepare implements driver.Grantor.
func (FakeSetup) Prepare(driver.HubSettings) (need string, args []string) {
	return "The hub needs nothing.", []string{"version"}
}

// OwnGranter implements driver.Grantor.
func (s FakeSetup) OwnGranter(context.Context, driver.HubSettings, client.Client, clock.PassiveClock) (granter driver.Granter, user string, err error) {
	return &FakeGranter{Outside: s.Outside, Name: SetupType}, "user", nil
}

// Words implements driver.Advisor.
func (FakeSetup) Words() driver.Words {
	return driver.Words{
		Provider: "the fake service", Identity: "fake identity", Identities: "fake identities", Clusters: "fake clusters",
		Way: "the fake service", Place: "a fake hub", Hub: "the name of the hub", IDFlag: FakeIDFlag, OwnFlag: "--none", Needs: "version",
	}
}

// Help implements driver.Advisor.
func (FakeSetup) Help() driver.Help { return driver.Help{} }

// Short implements driver.Advisor.
func (FakeSetup) Short(id string) string { return id }

// InitArgs implements driver.Advisor.
func (FakeSetup) InitArgs(hub driver.HubSettings) []string {
	return []string{"--registration-auth", string(SetupType), "--" + FakeHubFlag, hub.Annotations[fakeHubAnnotation]}
}

// JoinArgs implements driver.Advisor.
func (s FakeSetup) JoinArgs(hub driver.HubSettings) []string { return s.InitArgs(hub) }

// CheckHub implements driver.Checker.
func (s FakeSetup) CheckHub(_ driver.CheckScope, manager *operatorv1.ClusterManager) []finding.Step {
	return []finding.Step{{Name: "fake clusters can register", Run: func(context.Context) finding.Outcome {
		return finding.Good("on %s", manager.Annotations[fakeHubAnnotation])
	}}}
}

// CheckCluster implements driver.Checker.
func (s FakeSetup) CheckCluster(scope driver.CheckScope, cluster *clusterv1.ManagedCluster) (announced, granted []finding.Step) {
	announced = []finding.Step{{Name: "its fake identity is announced", Run: func(context.Context) finding.Outcome {
		id, err := s.AnnouncedID(cluster)
		if err != nil {
			return finding.Broken(err)
		}
		return finding.Good("%s", id)
	}}}
	granted = []finding.Step{{Name: "its fake identity is granted", Run: func(ctx context.Context) finding.Outcome {
		grants, err := scope.Granted(ctx, SetupType)
		if err != nil {
			return finding.Broken(err)
		}
		if len(grants) == 0 {
			return finding.Bad("accept it", "nothing is granted")
		}
		return finding.Good("%s", grants[0].Data["role"])
	}}}
	return announced, granted
}
