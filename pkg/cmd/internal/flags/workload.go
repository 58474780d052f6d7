package flags

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// Workload is the flags about images, resources and nodes.
type Workload struct {
	image           string
	registry        string
	pullFile        string
	qos             operatorv1.ResourceQosClass
	limits          map[string]string
	requests        map[string]string
	nodeSelector    map[string]string
	tolerations     []string
	createNamespace bool
	syncLabels      bool
	// flags say whether those about an operator were given; nil if there are none.
	flags *pflag.FlagSet
}

const flagSyncLabels = "enable-sync-labels"

// AddTo registers the flags.
func (w *Workload) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.image, "image", "", "image that everything runs, by tag or digest")
	flags.StringVar(&w.registry, "image-registry", "", "registry and path to take the image from")
	flags.StringVar(&w.pullFile, "image-pull-credential-file", "", "docker config file with the credentials to pull the image")
	cli.AliasFlag(cmd, "image-pull-secret-file", "image-pull-credential-file")
	cli.NewEnum(&w.qos, nil, operatorv1.ResourceQosClassDefault, operatorv1.ResourceQosClassBestEffort, operatorv1.ResourceQosClassResourceRequirement).
		AddTo(cmd, "resource-qos-class", "", "resources of the pods; ResourceRequirement takes the two flags below")
	flags.StringToStringVar(&w.limits, "resource-limits", nil, "limits, as cpu=500m,memory=256Mi")
	flags.StringToStringVar(&w.requests, "resource-requests", nil, "requests, as cpu=10m,memory=32Mi")
	flags.StringToStringVar(&w.nodeSelector, "node-selector", nil, "labels of the nodes to run on")
	flags.StringArrayVar(&w.tolerations, "toleration", nil, "taint to tolerate, as key[=value][:effect]")
	flags.BoolVar(&w.createNamespace, "create-namespace", true, "create the operator's namespace")
	cmd.MarkFlagsMutuallyExclusive("image", "image-registry")
	_ = cmd.MarkFlagFilename("image-pull-credential-file")
}

// AddOperatorTo registers the flags about what an operator applies.
func (w *Workload) AddOperatorTo(cmd *cobra.Command) {
	w.flags = cmd.Flags()
	w.flags.BoolVar(&w.syncLabels, flagSyncLabels, false, "copy the labels of the operator's resource onto what it applies")
}

// Value returns what the flags say, and a usage error for what they cannot mean.
func (w *Workload) Value() (install.Workload, error) {
	out := install.Workload{Image: w.image, Registry: w.registry, KeepNamespace: !w.createNamespace}
	if w.flags != nil && w.flags.Changed(flagSyncLabels) {
		out.SyncLabels = &w.syncLabels
	}
	var errs []error
	for flag, value := range map[string]string{"image": w.image, "image-registry": w.registry} {
		if strings.ContainsAny(value, " \t\n") || strings.Contains(value, "://") {
			errs = append(errs, fmt.Errorf("--%s: %q is not a reference to an image", flag, value))
		}
	}
	var errPull, errResources, errPlacement error
	out.PullCredentials, errPull = w.pullCredentials()
	out.Resources, errResources = w.resources()
	out.Placement, errPlacement = w.placement()
	if err := errors.Join(append(errs, errPull, errResources, errPlacement)...); err != nil {
		return out, cli.Usagef("%v", err)
	}
	return out, nil
}

func (w *Workload) pullCredentials() ([]byte, error) {
	if w.pullFile == "" {
		return nil, nil
	}
	data, err := cli.ReadFile(w.pullFile)
	if err != nil {
		return nil, fmt.Errorf("--image-pull-credential-file: %w", err)
	}
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	// The parser's message may quote the file.
	if json.Unmarshal(data, &config) != nil || len(config.Auths) == 0 {
		return nil, fmt.Errorf("--image-pull-credential-file: %s is not a docker config file with \"auths\"", w.pullFile)
	}
	return data, nil
}

func (w *Workload) resources() (*operatorv1.ResourceRequirement, error) {
	custom := len(w.limits)+len(w.requests) > 0
	switch {
	case w.qos == "" && custom:
		w.qos = operatorv1.ResourceQosClassResourceRequirement
	case w.qos == "":
		return nil, nil
	case custom && w.qos != operatorv1.ResourceQosClassResourceRequirement:
		return nil, fmt.Errorf("--resource-limits and --resource-requests need --resource-qos-class=%s", operatorv1.ResourceQosClassResourceRequirement)
	}
	out := &operatorv1.ResourceRequirement{Type: w.qos}
	if !custom {
		return out, nil
	}
	limits, limitsErr := resourceList("resource-limits", w.limits)
	requests, requestsErr := resourceList("resource-requests", w.requests)
	out.ResourceRequirements = &corev1.ResourceRequirements{Limits: limits, Requests: requests}
	return out, errors.Join(limitsErr, requestsErr)
}

func resourceList(flag string, values map[string]string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		quantity, err := resource.ParseQuantity(values[name])
		if err != nil || quantity.Sign() < 0 {
			errs = append(errs, fmt.Errorf("--%s: %s=%s is not a quantity", flag, name, values[name]))
			continue
		}
		list[corev1.ResourceName(name)] = quantity
	}
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	return list, errors.Join(errs...)
}

func (w *Workload) placement() (*operatorv1.NodePlacement, error) {
	if len(w.nodeSelector)+len(w.tolerations) == 0 {
		return nil, nil
	}
	out := &operatorv1.NodePlacement{NodeSelector: w.nodeSelector}
	for _, text := range w.tolerations {
		toleration, err := parseToleration(text)
		if err != nil {
			return nil, err
		}
		out.Tolerations = append(out.Tolerations, toleration)
	}
	return out, nil
}

func parseToleration(text string) (corev1.Toleration, error) {
	rest, effect, _ := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(rest, "=")
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if hasValue {
		toleration.Operator, toleration.Value = corev1.TolerationOpEqual, value
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if key == "" || !slices.Contains(effects, toleration.Effect) {
		return toleration, fmt.Errorf("--toleration: %q is not key[=value][:effect]", text)
	}
	return toleration, nil
}

// Preflight is the flags about failed preflight checks.
type Preflight struct {
	skip  []string
	force bool
}

// AddTo registers --skip-check.
func (p *Preflight) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&p.skip, "skip-check", nil, "Preflight checks whose failures are warnings")
	_ = cmd.RegisterFlagCompletionFunc("skip-check", cobra.FixedCompletions(install.Checks(), cobra.ShellCompDirectiveNoFileComp))
}

// AddForceTo registers --skip-check and --force, which skips all checks.
func (p *Preflight) AddForceTo(cmd *cobra.Command) {
	p.AddTo(cmd)
	cmd.Flags().BoolVar(&p.force, "force", false, "Treat failed preflight checks as warnings")
}

// Skipped are the checks whose failures are warnings.
func (p *Preflight) Skipped() []string {
	if p.force {
		return install.Checks()
	}
	return p.skip
}
