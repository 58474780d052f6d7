package manifests_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// allowedDifferences are the only differences between the CRDs that the OCM API
// module publishes and ours, descriptions aside. Everything else in a CRD is
// what OCM's clients on the other side of the API server rely on.
func allowedDifferences() map[string][]string {
	const (
		addOns   = ".addon.open-cluster-management.io"
		clusters = ".cluster.open-cluster-management.io"
		operator = ".operator.open-cluster-management.io"
		works    = ".work.open-cluster-management.io"
	)
	// ARNs of GovCloud and China, and names with an underscore, are taken too.
	pattern := func(path string) string {
		return "versions[v1]." + path + `.pattern: ^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$ -> ^arn:aws[a-z-]*:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9_-]+)$`
	}
	// Add-ons are stored in the version that our components speak.
	stored := []string{"versions[v1alpha1].storage: true -> false", "versions[v1beta1].storage: false -> true"}
	return map[string][]string{
		"addondeploymentconfigs" + addOns: append([]string{"conversion: added"}, stored...),
		"addontemplates" + addOns:         {"conversion: added", "versions[v1beta1]: added"},
		"clustermanagementaddons" + addOns: append([]string{
			"conversion: added",
			"versions[v1alpha1] columns: added Strategy, Age", "versions[v1beta1] columns: added Strategy, Age",
		}, stored...),
		"managedclusteraddons" + addOns: append([]string{
			"conversion: added",
			"versions[v1alpha1] columns: added Driver, Install-Namespace, Reason, Age",
			"versions[v1beta1] columns: added Driver, Install-Namespace, Reason, Age",
		}, stored...),
		"clusterclaims" + clusters:   {"versions[v1alpha1] columns: added Value, Age"},
		"managedclusters" + clusters: {"versions[v1] columns: added Version, ClusterSet, Certificate"},
		"manifestworks" + works:      {"versions[v1] columns: added Applied, Available, Age"},
		// No value means the operator's own image, and no limit of requests.
		"clustermanagers" + operator: {
			"versions[v1] columns: added Applied, Progressing, Registration-Degraded, Reason, Age",
			pattern("spec.registrationConfiguration.registrationDrivers.items.awsirsa.hubClusterArn"),
			"versions[v1].spec.addOnManagerImagePullSpec.default: removed",
			"versions[v1].spec.placementImagePullSpec.default: removed",
			"versions[v1].spec.registrationImagePullSpec.default: removed",
			"versions[v1].spec.workImagePullSpec.default: removed",
		},
		"klusterlets" + operator: {
			"versions[v1] columns: added Cluster, Applied, Available, Hub-Degraded, Reason, Namespace, Age",
			pattern("spec.registrationConfiguration.registrationDriver.awsIrsa.hubClusterArn"),
			pattern("spec.registrationConfiguration.registrationDriver.awsIrsa.managedClusterArn"),
			"versions[v1].spec.registrationConfiguration.kubeAPIBurst.default: removed",
			"versions[v1].spec.registrationConfiguration.kubeAPIQPS.default: removed",
			"versions[v1].spec.workConfiguration.hubKubeAPIBurst.default: removed",
			"versions[v1].spec.workConfiguration.hubKubeAPIQPS.default: removed",
			"versions[v1].spec.workConfiguration.kubeAPIBurst.default: removed",
			"versions[v1].spec.workConfiguration.kubeAPIQPS.default: removed",
		},
	}
}

// TestCRDsAreThePublishedOnes compares every CRD of the OCM API module with ours.
func TestCRDsAreThePublishedOnes(t *testing.T) {
	t.Parallel()
	published, ours, allowed := readCRDs(t, publishedFiles(t)), readCRDs(t, ourFiles(t)), allowedDifferences()
	for _, name := range slices.Sorted(maps.Keys(published)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ours[name] == nil {
				t.Fatal("not installed by any operator")
			}
			got := differences("", published[name]["spec"], ours[name]["spec"])
			want := slices.Clone(allowed[name])
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("differences from the published file (-allowed +found):\n%s", diff)
			}
		})
	}
	for name := range ours {
		if published[name] == nil {
			t.Errorf("%s is said to be generated and is not published", name)
		}
	}
}

// TestPublishedDescriptionsAreLeftOut covers what the comparison leaves out: the
// sentences are ours.
func TestPublishedDescriptionsAreLeftOut(t *testing.T) {
	t.Parallel()
	theirs := map[string]bool{}
	for _, crd := range readCRDs(t, publishedFiles(t)) {
		descriptions(crd["spec"], func(text string) { theirs[text] = true })
	}
	for name, crd := range readCRDs(t, ourFiles(t)) {
		descriptions(crd["spec"], func(text string) {
			if theirs[text] {
				t.Errorf("%s: description of the API module: %q", name, text)
			}
		})
	}
	if len(theirs) == 0 {
		t.Error("the published files have no descriptions: the test does not find them")
	}
}

// TestAddOnTemplateVersionsAreAlike: the API server converts between them by
// changing apiVersion, so neither may have a field that the other lacks.
func TestAddOnTemplateVersionsAreAlike(t *testing.T) {
	t.Parallel()
	all := versions(readCRDs(t, ourFiles(t))["addontemplates.addon.open-cluster-management.io"])
	got := differences("", all["v1alpha1"], all["v1beta1"])
	slices.Sort(got)
	if diff := cmp.Diff([]string{"name: v1alpha1 -> v1beta1", "storage: true -> false"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func publishedFiles(t *testing.T) []string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return globFiles(t, filepath.Join(string(bytes.TrimSpace(module)), "*", "*", "*.crd.yaml"))
}

// ourFiles are the CRDs of OCM. Those of APIs of our own are not among them.
func ourFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(globFiles(t, filepath.Join("crds", "*", "*.yaml")), func(file string) bool {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return !bytes.HasPrefix(data, []byte("# Generated by scripts/generate-crds "))
	})
}

func globFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

// readCRDs reads CRDs by name. Of several files of one CRD, which the module
// has for each Go package, the one with the most versions counts.
func readCRDs(t *testing.T, files []string) map[string]map[string]any {
	t.Helper()
	crds := map[string]map[string]any{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(dig(crd, "metadata")["name"])
		if len(versions(crd)) > len(versions(crds[name])) {
			crds[name] = crd
		}
	}
	return crds
}

func dig(value any, path ...string) map[string]any {
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	m, _ := value.(map[string]any)
	return m
}

func versions(crd map[string]any) map[string]any {
	list, _ := dig(crd, "spec")["versions"].([]any)
	return byName(list)
}

func byName(list []any) map[string]any {
	named := map[string]any{}
	for _, entry := range list {
		named[fmt.Sprint(dig(entry)["name"])] = entry
	}
	return named
}

// differences lists where two parts of a CRD differ, one line each.
func differences(path string, theirs, ours any) []string {
	a, aOK := theirs.(map[string]any)
	b, bOK := ours.(map[string]any)
	if !aOK || !bOK {
		if reflect.DeepEqual(theirs, ours) {
			return nil
		}
		return []string{fmt.Sprintf("%s: %v -> %v", short(path), theirs, ours)}
	}
	var found []string
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for key := range keys {
		_, inA := a[key]
		_, inB := b[key]
		child := strings.TrimPrefix(path+"."+key, ".")
		switch {
		case key == "description" && !strings.HasSuffix(path, ".properties"):
		case key == "additionalPrinterColumns":
			found = append(found, columnDifferences(path, a[key], b[key])...)
		case !inA:
			found = append(found, short(child)+": added")
		case !inB:
			found = append(found, short(child)+": removed")
		case key == "versions":
			found = append(found, versionDifferences(a[key], b[key])...)
		default:
			found = append(found, differences(child, a[key], b[key])...)
		}
	}
	return found
}

func versionDifferences(theirs, ours any) []string {
	a, _ := theirs.([]any)
	b, _ := ours.([]any)
	if len(byName(a)) != len(a) || len(byName(b)) != len(b) {
		return []string{"versions: a name twice"}
	}
	var found []string
	for name, version := range byName(b) {
		path := "versions[" + name + "]"
		if published, ok := byName(a)[name]; ok {
			found = append(found, differences(path, published, version)...)
		} else {
			found = append(found, path+": added")
		}
	}
	for name := range byName(a) {
		if byName(b)[name] == nil {
			found = append(found, "versions["+name+"]: removed")
		}
	}
	return found
}

// columnDifferences says which columns were added. The published ones must be
// there in their order.
func columnDifferences(path string, theirs, ours any) []string {
	published, _ := theirs.([]any)
	columns, _ := ours.([]any)
	var added []string
	for _, column := range columns {
		if len(published) > 0 && reflect.DeepEqual(column, published[0]) {
			published = published[1:]
			continue
		}
		added = append(added, fmt.Sprint(dig(column)["name"]))
	}
	var found []string
	if len(published) > 0 {
		found = append(found, fmt.Sprintf("%s columns: %v missing or in another order", short(path), dig(published[0])["name"]))
	}
	if len(added) > 0 {
		found = append(found, short(path)+" columns: added "+strings.Join(added, ", "))
	}
	return found
}

// short leaves out of a path what every field of a schema has in it.
func short(path string) string {
	return strings.NewReplacer(".schema.openAPIV3Schema", "", ".properties", "").Replace(path)
}

// descriptions calls found with every description below value.
func descriptions(value any, found func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if text, ok := child.(string); ok && key == "description" {
				found(text)
			}
			if key != "additionalPrinterColumns" {
				descriptions(child, found)
			}
		}
	case []any:
		for _, child := range value {
			descriptions(child, found)
		}
	}
}
