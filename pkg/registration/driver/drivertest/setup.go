package drivertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// SetupSuite is a driver.Setup with flags that are valid.
type SetupSuite struct {
	Setup driver.Setup
	// Init and Join are arguments of these commands with which a hub and a cluster
	// register by the driver.
	Init, Join []string
	// Changed are arguments of init that change one setting and leave out the others.
	Changed []string
}

// RunSetup checks that the parts of a Setup agree: a component reads what the operator
// wrote, and what a command does not say again stays. It sends no request.
func RunSetup(t *testing.T, s SetupSuite) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, SetupSuite){
		"the controller reads what init says":          controllerReads,
		"the agent reads what join says":               agentReads,
		"what init leaves out stays":                   retains,
		"settings that say nothing harm nothing":       emptyIsHarmless,
		"the flags of one command have different uses": flagsApart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
	if by, ok := s.Setup.(driver.Identifier); ok {
		t.Run("commands and the agent mean the same identity", func(t *testing.T) {
			t.Parallel()
			sameIdentity(t, s, by)
		})
	}
}

// parsed returns flags that have read arguments.
func parsed[F interface{ AddTo(flags *pflag.FlagSet) }](t *testing.T, flags F, args []string) F {
	t.Helper()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddTo(set)
	set.ParseErrorsAllowlist.UnknownFlags = true // The component has others as well.
	if err := set.Parse(args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return flags
}

// hubSettings returns the settings for arguments of init.
func (s SetupSuite) hubSettings(t *testing.T, args []string) driver.HubSettings {
	t.Helper()
	settings, err := parsed(t, s.Setup.InitFlags(), args).Settings(driver.InitFacts{AutoApproval: true})
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return settings
}

// agentSettings returns the settings for the arguments of join.
func (s SetupSuite) agentSettings(t *testing.T) operatorv1.RegistrationDriver {
	t.Helper()
	settings, err := parsed(t, s.Setup.JoinFlags(), s.Join).Settings()
	if err != nil {
		t.Fatalf("%v: %v", s.Join, err)
	}
	return settings
}

func controllerReads(t *testing.T, s SetupSuite) {
	t.Helper()
	settings := s.Setup.Retain(s.hubSettings(t, s.Init), driver.HubSettings{})
	if err := s.Setup.ValidateHub(settings); err != nil {
		t.Fatal(err)
	}
	if settings.Driver.AuthType != string(s.Setup.Type()) {
		t.Errorf("the settings are of the driver %q", settings.Driver.AuthType)
	}
	runtime := s.Setup.HubRuntime(settings)
	checkAccount(t, s, runtime)
	for _, rule := range runtime.System {
		if len(rule.ResourceNames) == 0 || slices.Contains(slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups), "*") {
			t.Errorf("%v does not name its objects: the operator holds it in every namespace", rule)
		}
	}
	if d, _, err := parsed(t, s.Setup.HubFlags(), runtime.Args).Driver(); err != nil || d == nil {
		t.Errorf("the controller does not start with %v: %v", runtime.Args, err)
	}
}

func agentReads(t *testing.T, s SetupSuite) {
	t.Helper()
	settings := s.agentSettings(t)
	if err := s.Setup.ValidateAgent(settings); err != nil {
		t.Fatal(err)
	}
	runtime := s.Setup.AgentRuntime(settings)
	checkAccount(t, s, runtime)
	if newDriver, err := parsed(t, s.Setup.AgentFlags(), runtime.Args).Driver(); err != nil || newDriver(driver.Identity{Cluster: "c1", Agent: "a1"}) == nil {
		t.Errorf("the agent does not start with %v: %v", runtime.Args, err)
	}
}

// checkAccount checks that an operator which retains a runtime knows its annotations.
func checkAccount(t *testing.T, s SetupSuite, runtime driver.Runtime) {
	t.Helper()
	for key := range runtime.Account {
		if !slices.Contains(s.Setup.AccountKeys(), key) {
			t.Errorf("the ServiceAccount has the annotation %s, which AccountKeys lacks", key)
		}
	}
}

func retains(t *testing.T, s SetupSuite) {
	t.Helper()
	live := s.Setup.Retain(s.hubSettings(t, s.Init), driver.HubSettings{})
	again := s.Setup.Retain(driver.HubSettings{Driver: operatorv1.RegistrationDriverHub{AuthType: string(s.Setup.Type())}}, live)
	if diff := cmp.Diff(s.Setup.HubRuntime(live), s.Setup.HubRuntime(again)); diff != "" {
		t.Errorf("nothing was said (-live +got):\n%s", diff)
	}
	flags := parsed(t, s.Setup.InitFlags(), s.Changed)
	wanted, _ := flags.Settings(driver.InitFacts{AutoApproval: true}) // What it leaves out is live.
	changed := s.Setup.Retain(wanted, live)
	if err := s.Setup.ValidateHub(changed); err != nil {
		t.Errorf("after %v: %v", s.Changed, err)
	}
	if cmp.Diff(s.Setup.HubRuntime(live), s.Setup.HubRuntime(changed)) == "" {
		t.Errorf("%v changed nothing", s.Changed)
	}
}

func emptyIsHarmless(t *testing.T, s SetupSuite) {
	t.Helper()
	hub, agent := driver.HubSettings{}, operatorv1.RegistrationDriver{}
	s.Setup.HubRuntime(hub)
	s.Setup.AgentRuntime(agent)
	if id := s.Setup.HubID(agent); id != "" {
		t.Errorf("no settings name the hub %q", id)
	}
	if name := s.Setup.Grants().Hub(hub); name != "" {
		t.Errorf("no settings name the hub %q", name)
	}
	if said, err := parsed(t, s.Setup.AcceptFlags(), nil).Acceptance(""); err != nil || said.ID != "" || said.Own {
		t.Errorf("accept without flags says %+v, %v", said, err)
	}
}

// flagsApart checks that an alias is no flag, and that all flags are described.
func flagsApart(t *testing.T, s SetupSuite) {
	t.Helper()
	for command, add := range map[string]func(*pflag.FlagSet){
		"init": s.Setup.InitFlags().AddTo, "join": s.Setup.JoinFlags().AddTo, "accept": s.Setup.AcceptFlags().AddTo,
		"controller hub": s.Setup.HubFlags().AddTo, "controller agent": s.Setup.AgentFlags().AddTo,
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		add(set)
		set.VisitAll(func(flag *pflag.Flag) {
			if flag.Usage == "" {
				t.Errorf("%s: --%s has no description", command, flag.Name)
			}
			for _, alias := range flag.Annotations[driver.FlagAlias] {
				if set.Lookup(alias) != nil {
					t.Errorf("%s: --%s is a flag and another name of --%s", command, alias, flag.Name)
				}
			}
		})
	}
}

func sameIdentity(t *testing.T, s SetupSuite, by driver.Identifier) {
	t.Helper()
	settings := s.agentSettings(t)
	newDriver, err := parsed(t, by.AgentFlags(), by.AgentRuntime(settings).Args).Driver()
	if err != nil {
		t.Fatal(err)
	}
	decorated := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	newDriver(driver.Identity{Cluster: "c1", Agent: "a1"}).Decorate(decorated)
	announced := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	if err := by.Announce(announced, by.ID(settings), by.Hub(settings)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decorated, announced); diff != "" {
		t.Errorf("accept writes something else than the agent (-agent +accept):\n%s", diff)
	}
	identified(t, by, settings, announced)
	sameHub(t, by, settings)
}

// identified checks what the hub makes of a ManagedCluster that an agent announced.
func identified(t *testing.T, by driver.Identifier, settings operatorv1.RegistrationDriver, announced *clusterv1.ManagedCluster) {
	t.Helper()
	unread := maps.Clone(announced.Annotations)
	maps.DeleteFunc(unread, func(key, _ string) bool { return slices.Contains(by.Annotations(), key) })
	if len(unread) > 0 {
		t.Errorf("the driver does not read %v", unread)
	}
	if id, err := by.AnnouncedID(announced); err != nil || id != by.ID(settings) {
		t.Errorf("the cluster announces %q, %v, and the agent is %q", id, err, by.ID(settings))
	}
	found, err := by.Identify(announced, by.Hub(settings))
	if err != nil || found == nil {
		t.Fatalf("the hub identifies the cluster as %v, %v", found, err)
	}
	if found.ID != by.ID(settings) || found.Key == "" || len(found.Trusted) == 0 {
		t.Errorf("the hub identifies the cluster as %+v", found)
	}
	if bare, err := by.Identify(&clusterv1.ManagedCluster{}, by.Hub(settings)); bare != nil || err != nil {
		t.Errorf("a cluster without annotations is %+v, %v", bare, err)
	}
}

// sameHub checks that join and accept identify the hub alike.
func sameHub(t *testing.T, by driver.Identifier, settings operatorv1.RegistrationDriver) {
	t.Helper()
	if hub := by.Grants().Hub(by.Hub(settings)); hub != by.HubID(settings) || hub == "" {
		t.Errorf("the agent's hub is %q for accept, and %q for join", hub, by.HubID(settings))
	}
}
