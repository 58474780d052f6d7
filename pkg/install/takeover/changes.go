package takeover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-base/featuregate"
	strictjson "sigs.k8s.io/json"

	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// Change is something that OCM does and this release does not. A take-over that has
// one which the user did not accept does not start.
type Change struct {
	// Name is what the user accepts: a field, a feature gate, a flag or a resource.
	Name string `json:"name"`
	// Message is one sentence about what becomes of it.
	Message string `json:"message"`
	// Accepted is true if the user accepted it.
	Accepted bool `json:"accepted"`
}

// Changes returns all of them, sorted by name, with those marked that are accepted.
func (s *Survey) Changes(accepted []string) []Change {
	var cm operatorv1.ClusterManager
	var k operatorv1.Klusterlet
	var unknown []Change
	if s.side.kind.Kind == "ClusterManager" {
		unknown = decode(s.resource(), &cm)
	} else {
		unknown = decode(s.resource(), &k)
	}
	changes := slices.Concat(s.flags(), s.users(), s.forgotten(), unknown, hubChanges(&cm.Spec), agentChanges(&k.Spec))
	for i := range changes {
		changes[i].Accepted = slices.Contains(accepted, changes[i].Name)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(changes, func(a, b Change) bool { return a.Name == b.Name })
}

// decode reads a resource and returns the fields of its spec that our API module does
// not know.
func decode(resource *unstructured.Unstructured, into any) []Change {
	data, err := json.Marshal(resource.Object)
	if err != nil {
		return nil // It was read as JSON.
	}
	fields, err := strictjson.UnmarshalStrict(data, into, strictjson.DisallowUnknownFields)
	if err != nil {
		return []Change{{Name: "spec", Message: "the spec cannot be read: " + err.Error()}}
	}
	var changes []Change
	for _, field := range fields {
		_, name, _ := strings.Cut(field.Error(), `"`)
		name, inSpec := strings.CutPrefix(strings.TrimSuffix(name, `"`), "spec.")
		changes = append(changes, applying(candidate{inSpec, name, "this release does not know this field"})...)
	}
	return changes
}

// hubChanges are the changes of a ClusterManager's spec.
func hubChanges(spec *operatorv1.ClusterManagerSpec) []Change {
	var changes []Change
	if c := spec.RegistrationConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, names.HubRegistrationGates())...)
		changes = append(changes, applying(candidate{c.ImporterConfiguration != nil, "importerConfiguration", "clusters of Cluster API are not imported"})...)
	}
	if c := spec.WorkConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, names.HubWorkGates())...)
		changes = append(changes, applying(candidate{
			c.WorkDriver != "" && c.WorkDriver != operatorv1.WorkDriverTypeKube, "workDriver",
			"works are delivered by the hub's API server only, not by " + string(c.WorkDriver),
		})...)
	}
	if c := spec.AddOnManagerConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, names.HubAddOnGates())...)
	}
	if c := spec.PlacementConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, nil)...)
	}
	changes = append(changes, applying(candidate{spec.ServerConfiguration != nil, "serverConfiguration", "there is no gRPC server"})...)
	webhooks := spec.DeployOption.Default
	return append(changes, applying(candidate{
		webhooks != nil && webhooks.AddonWebhookConfiguration.BindConfiguration != nil, "bindConfiguration",
		"the one webhook serves on its own ports, not in the network of the node",
	})...)
}

// agentChanges are the changes of a Klusterlet's spec.
func agentChanges(spec *operatorv1.KlusterletSpec) []Change {
	changes := applying(candidate{
		spec.DeployOption.Mode == operatorv1.InstallModeSingleton, "mode",
		"the mode Singleton becomes Default: registration and works have a pod each",
	})
	if c := spec.RegistrationConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, names.AgentRegistrationGates())...)
		changes = append(changes, rates("registrationConfiguration", c.KubeAPIQPS, c.KubeAPIBurst)...)
		changes = append(changes, applying(candidate{
			c.BootstrapKubeConfigs.LocalSecrets != nil, "bootstrapKubeConfigs",
			"the agent has one hub, that of the Secret " + names.BootstrapHubKubeconfigSecret,
		})...)
	}
	if c := spec.WorkConfiguration; c != nil {
		changes = append(changes, gates(c.FeatureGates, names.AgentWorkGates())...)
		changes = append(changes, rates("workConfiguration", c.KubeAPIQPS, c.KubeAPIBurst, c.HubKubeAPIQPS, c.HubKubeAPIBurst)...)
	}
	return changes
}

// gates are the feature gates that an administrator enabled and that this product lacks. A
// gate that OCM enables by default was no choice, nor was the one of the placement controller's debug server,
// which is enabled when OCM's chart is installed with its defaults.
func gates(asked []operatorv1.FeatureGate, implemented []featuregate.Feature) []Change {
	var changes []Change
	for _, gate := range asked {
		known := slices.Contains(implemented, featuregate.Feature(gate.Feature)) || byDefault(featuregate.Feature(gate.Feature))
		changes = append(changes, applying(candidate{!known && gate.Mode == operatorv1.FeatureGateModeTypeEnable, gate.Feature, "this feature gate has no effect"})...)
	}
	return changes
}

// byDefault reports whether an installation of OCM has a gate without anyone's choice.
func byDefault(gate featuregate.Feature) bool {
	return feature.DefaultHubRegistrationFeatureGates[gate].Default || feature.DefaultSpokeRegistrationFeatureGates[gate].Default ||
		gate == feature.PlacementDebugServer
}

// Defaults of the CRD of Klusterlets.
const (
	defaultQPS   = 50
	defaultBurst = 100
)

// rates are limits of requests, which only the API server sets here: pairs of QPS and burst.
func rates(of string, limits ...int32) []Change {
	set := false
	for i, n := range limits {
		usual := []int32{defaultQPS, defaultBurst}[i%2]
		set = set || n != 0 && n != usual
	}
	return applying(candidate{set, of + ".kubeAPIQPS", "kubeAPIQPS and kubeAPIBurst have no effect: the API server limits the agent"})
}

// candidate is a change if it applies.
type candidate struct {
	applies       bool
	name, message string
}

// applying returns the changes among candidates.
func applying(candidates ...candidate) []Change {
	var changes []Change
	for _, c := range candidates {
		if c.applies {
			changes = append(changes, Change{Name: c.name, Message: c.message})
		}
	}
	return changes
}

// users are the resources of users whose controllers end.
func (s *Survey) users() []Change {
	placements, clusterSets := s.Users["Placement"], s.Users["ManagedClusterSet"]
	return applying(
		candidate{
			len(s.Grants) > 0 && s.runs("/addon"), "addon-templates",
			"add-ons made from AddOnTemplates keep what OCM bound and issued, and get new permissions and certificates only when the ServiceAccount " +
				names.HubAddOnManagerServiceAccount + " is granted: " + strings.Join(s.Grants, "; "),
		},
		candidate{
			placements > 0 && s.runs("/placement"), "placements",
			fmt.Sprintf("there is no placement controller: the decisions of %d Placements stay as they are", placements),
		},
		candidate{
			clusterSets > 0 && s.runs("/registration"), "cluster-sets",
			fmt.Sprintf("there is no controller of cluster sets: the status and the managed namespaces of %d ManagedClusterSets stay as they are, and no new cluster joins the set default", clusterSets),
		},
	)
}

// runs reports whether a component runs a program, other than as a webhook server.
func (s *Survey) runs(program string) bool {
	if s.Found == nil {
		return false
	}
	for _, d := range s.Found.Components {
		if len(d.Args) > 0 && d.Args[0] == program && !d.Answers() {
			return true
		}
	}
	return false
}

// flags are the flags of the operator that ours is installed without. A flag with its
// default is none, nor is enable-sync-labels, which ours keeps.
func (s *Survey) flags() []Change {
	if s.Found == nil {
		return nil
	}
	var changes []Change
	for _, d := range s.Found.Operators {
		for _, arg := range d.Args {
			name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			meant := slices.Contains([]string{"deployment-replicas", "skip-remove-crds", "disable-default-addon-namespace"}, name)
			set := strings.HasPrefix(arg, "--") && value != "false" && value != "0"
			changes = append(changes, applying(candidate{meant && set, name, "our operator runs without the flag " + arg + " of OCM's; add it to the Deployment " + path.Join(d.Namespace, d.Name)})...)
		}
	}
	return changes
}

// Problem is a reason why there can be no take-over.
type Problem struct{ Message, Try string }

// Problems returns all of them.
func (s *Survey) Problems() []Problem {
	problems := slices.Concat(s.managed(), s.restored(), s.unsupported())
	for i := range s.CRDs {
		problems = append(problems, unknownStorage(&s.CRDs[i], s.ours)...)
	}
	return problems
}

// managed are operators that something else restores.
func (s *Survey) managed() []Problem {
	if s.Found == nil {
		return nil
	}
	var problems []Problem
	for _, d := range s.Found.Operators {
		switch {
		case d.Restored:
			problems = append(problems, Problem{d.String() + " would be restored", givenUp(d.Tool)})
		case d.Namespace != names.OperatorNamespace:
			problems = append(problems, Problem{
				d.String() + " is not in the namespace " + names.OperatorNamespace,
				"manage it with what installed it, such as a distribution",
			})
		}
	}
	return problems
}

// restored is the resource that says which images run, if something else puts OCM's back.
func (s *Survey) restored() []Problem {
	tool, restores := origin.Tool(s.resource())
	if !restores || s.Empty() {
		return nil
	}
	return []Problem{{
		fmt.Sprintf("the %s %s, installed by %s, would be restored", s.side.kind.Kind, s.side.name, tool),
		givenUp(tool),
	}}
}

// givenUp is the advice about an object that a tool restores.
func givenUp(tool string) string {
	return "have " + tool + " give it up and remove its labels and annotations from it, or keep it"
}

// unsupported are resources that our operator would serve with the images of OCM, and
// settings that it rejects.
func (s *Survey) unsupported() []Problem {
	var problems []Problem
	for i := range s.Resources {
		if r := &s.Resources[i]; r.GetName() != s.side.name {
			problems = append(problems, Problem{
				fmt.Sprintf("there is the %s %s besides, or instead of, %s", r.GetKind(), r.GetName(), s.side.name),
				"delete it first, or keep this " + s.side.what,
			})
		}
	}
	return append(problems, grpc(s.resource())...)
}

// grpc is a registration driver that nothing replaces.
func grpc(resource *unstructured.Unstructured) []Problem {
	one, _, _ := unstructured.NestedString(resource.Object, "spec", "registrationConfiguration", "registrationDriver", "authType")
	several, _, _ := unstructured.NestedSlice(resource.Object, "spec", "registrationConfiguration", "registrationDrivers")
	for _, entry := range several {
		if driver, ok := entry.(map[string]any); ok && driver["authType"] == "grpc" {
			one = "grpc"
		}
	}
	if one != "grpc" {
		return nil
	}
	return []Problem{{"the registration driver is grpc, which this release does not have", "change it to csr with OCM first"}}
}

// unknownStorage is a CRD whose objects are stored in a version that ours lacks: the
// API server would reject ours. One that ours leaves alone is no problem.
func unknownStorage(live *crd, ours []*unstructured.Unstructured) []Problem {
	i := slices.IndexFunc(ours, func(u *unstructured.Unstructured) bool { return u.GetName() == live.Name })
	if i < 0 || newer(live) {
		return nil
	}
	versions, _, _ := unstructured.NestedSlice(ours[i].Object, "spec", "versions")
	for _, stored := range live.Status.StoredVersions {
		known := slices.ContainsFunc(versions, func(entry any) bool {
			version, ok := entry.(map[string]any)
			return ok && version["name"] == stored
		})
		if !known {
			return []Problem{{
				fmt.Sprintf("objects of the CRD %s are stored in %s, which this release does not know", live.Name, stored),
				"use a newer release of this command",
			}}
		}
	}
	return nil
}
