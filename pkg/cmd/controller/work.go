//go:build linux

package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent"
)

// workFlags are the flags of the work agent, those of OCM's.
type workFlags struct {
	common   common
	cluster  string
	agentID  string
	driver   string
	hub      string
	sync     time.Duration
	eviction time.Duration
	rawLimit int32
	watches  int
	workers  int
	gates    []string
}

func newWork() *cobra.Command {
	return newRole(&workFlags{common: newPatient()}, &cobra.Command{
		Use:   "work",
		Short: "Apply the ManifestWorks of a cluster and report their status",
	})
}

func (f *workFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&f.common.kubeconfig, "spoke-kubeconfig", "", "OCM's name of --kubeconfig")
	set.StringVar(&f.cluster, "spoke-cluster-name", "", "name of this cluster on the hub; empty means the one that is stored next to the hub kubeconfig")
	set.StringVar(&f.agentID, "agent-id", "", "ID of this agent in AppliedManifestWorks; empty means the hash of the hub's address")
	set.StringVar(&f.driver, "workload-source-driver", workDriverKube, "where ManifestWorks come from: kube, the API server of the hub")
	set.StringVar(&f.hub, "workload-source-config", "/spoke/hub-kubeconfig/kubeconfig", "kubeconfig of the hub")
	set.DurationVar(&f.sync, "status-sync-interval", 10*time.Second, "how often the status of objects is read that are not watched")
	set.DurationVar(&f.eviction, "appliedmanifestwork-eviction-grace-period", time.Hour, "how long objects stay whose ManifestWork is gone or belongs to another hub")
	set.Int32Var(&f.rawLimit, "max-json-raw-length", 1024, "longest JSON of an object or array in status feedback")
	set.IntVar(&f.watches, "max-feedback-watch", 50, "how many objects are watched for status feedback; further ones are read")
	set.IntVar(&f.workers, "workload-agent-workers", 10, "how many ManifestWorks are applied at a time")
	set.StringSliceVar(&f.gates, "feature-gates", nil, "Name=true or Name=false of: "+joined(feature.DefaultSpokeWorkFeatureGates))
	const limited, events = "the API server limits its clients", "ManifestWorks from a message broker are not available in this version"
	flags.AddCompat(cmd, map[string]string{
		"hub-kube-api-qps": limited, "hub-kube-api-burst": limited, "kube-api-qps": limited, "kube-api-burst": limited,
		"terminate-on-files": "the agent reads a changed hub kubeconfig without a restart",
	}, map[string]string{"cloudevents-client-id": events, "cloudevents-client-codecs": events})
}

// workDriverKube is the one value of --workload-source-driver that there is.
const workDriverKube = "kube"

// validate checks the flags, without the network, and returns the gates.
func (f *workFlags) validate() (gates, error) {
	gates, errGates := parseGates(feature.DefaultSpokeWorkFeatureGates, f.gates)
	errs := []error{errGates}
	if f.cluster != "" {
		if err := names.ValidateClusterName(f.cluster); err != nil {
			errs = append(errs, fmt.Errorf("--spoke-cluster-name: %w", err))
		}
	}
	if f.driver != workDriverKube {
		errs = append(errs, fmt.Errorf("--workload-source-driver: %q is not available in this version: use %s", f.driver, workDriverKube))
	}
	if f.hub == "" {
		errs = append(errs, errors.New("--workload-source-config is missing"))
	}
	if f.sync <= 0 {
		errs = append(errs, fmt.Errorf("--status-sync-interval must be positive, not %s", f.sync))
	}
	if f.eviction < 0 || f.rawLimit < 0 || f.watches < 0 {
		errs = append(errs, errors.New("--appliedmanifestwork-eviction-grace-period, --max-json-raw-length and --max-feedback-watch must not be negative"))
	}
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workload-agent-workers must be positive, not %d", f.workers))
	}
	return gates, errors.Join(errs...)
}

// clusterName returns the name of the cluster: the flag's, or the one that the
// registration agent stored next to the hub kubeconfig.
func (f *workFlags) clusterName() (string, error) {
	if f.cluster != "" {
		return f.cluster, nil
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(f.hub), names.KeyClusterName))
	if err != nil {
		return "", fmt.Errorf("--spoke-cluster-name is not set, and the name is not stored next to the hub kubeconfig: %w", err)
	}
	name := strings.TrimSpace(string(data))
	if err := names.ValidateClusterName(name); err != nil {
		return "", fmt.Errorf("the cluster name that is stored next to the hub kubeconfig: %w", err)
	}
	return name, nil
}

func (f *workFlags) run(cmd *cobra.Command) error {
	gates, err := f.validate()
	if err != nil {
		return err
	}
	cluster, err := f.clusterName()
	if err != nil {
		return err
	}
	mgr, err := f.common.manager("work-agent", agent.CacheOptions())
	if err != nil {
		return err
	}
	config := f.config(cluster, gates)
	evaluator := ruleProcesses()
	defer evaluator.Close()
	config.Rules = evaluator
	if err := agent.Setup(mgr, config); err != nil {
		return err
	}
	klog.FromContext(cmd.Context()).Info("Starting the work agent", "cluster", cluster, "agentID", f.agentID, "gates", gates)
	return mgr.Start(cmd.Context())
}

// reviewInterval is how long an executor may have lost a permission before its works say so:
// five reviews for each object of a work with an executor.
const reviewInterval = 5 * time.Minute

// config is what the agent needs to know of the flags.
func (f *workFlags) config(cluster string, gates gates) agent.Config {
	return agent.Config{
		Cluster: cluster, AgentID: f.agentID, HubKubeconfig: f.hub,
		StatusSyncInterval: f.sync, ReviewInterval: reviewInterval, EvictionGracePeriod: f.eviction,
		RawFeedback: gates[feature.RawFeedbackJsonString], MaxJSONRawLength: f.rawLimit,
		MaxFeedbackWatch: f.watches, Workers: f.workers, Clock: clock.RealClock{}, Metrics: metrics.Registry,
	}
}
