package pullsecrets

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Arguments reads the configuration of a controller from its arguments.
type Arguments func(args []string) (imagepull.Config, error)

// checker makes the checks of one cluster.
type checker struct {
	diagnose.Scope

	read Arguments
	// config is that of the installed controller.
	config imagepull.Config
	found  *inventory.Inventory
	// selected are the ServiceAccounts that are to have a pull secret.
	selected []types.NamespacedName
}

// Steps returns the checks of the image pull secrets of a cluster, in order.
func Steps(s diagnose.Scope, read Arguments) []finding.Step {
	k := &checker{Scope: s, read: read}
	return []finding.Step{
		{Name: "the controller is installed and ready", Needed: true, Run: k.controller},
		{Name: "one Pod of the controller leads", Run: k.leader},
		{Name: "tokens are for the registries only", Run: k.audience},
		{Name: "ServiceAccounts are selected", Needed: true, Run: k.selection},
		{Name: "each of them has a pull secret", Run: k.existing},
		{Name: "the pull secrets can be used", Run: k.usable},
		{Name: "the ServiceAccounts list them", Run: k.listed},
		{Name: "no Pod is too old for its pull secret", Run: k.late},
	}
}

// controller checks the Deployment, and reads the configuration from its arguments.
func (k *checker) controller(ctx context.Context) finding.Outcome {
	var deployment appsv1.Deployment
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: names.ImagePullNamespace, Name: names.ImagePullDeployment}, &deployment)
	if client.IgnoreNotFound(err) != nil {
		return finding.Broken(err)
	}
	if err != nil || len(deployment.Spec.Template.Spec.Containers) == 0 {
		return finding.Bad("install it with: "+k.Command("pull-secrets install"), "the controller is not installed")
	}
	if k.config, err = k.read(deployment.Spec.Template.Spec.Containers[0].Args); err != nil {
		return finding.Bad("set the flags with: "+k.Command("pull-secrets install"), "the controller's arguments cannot be used: %v", err)
	}
	if deployment.Status.AvailableReplicas > 0 {
		return finding.Good("%d of %d Pods are available", deployment.Status.AvailableReplicas, deployment.Status.Replicas)
	}
	problem, err := podproblem.OfDeployment(ctx, k.Client, &deployment)
	if err != nil {
		return finding.Broken(err)
	}
	if problem == "" {
		problem = "none of its Pods is available"
	}
	return finding.Bad("look at them with: "+k.Kubectl("describe pods -n", names.ImagePullNamespace), "%s", problem)
}

func (k *checker) leader(ctx context.Context) finding.Outcome {
	logs := "read what it says with: " + k.Kubectl("logs -n", names.ImagePullNamespace, "deployment/"+names.ImagePullDeployment)
	var lease coordinationv1.Lease
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: names.ImagePullNamespace, Name: names.ImagePullLease}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return finding.Broken(err)
	}
	spec := lease.Spec
	if err != nil || spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return finding.Bad(logs, "no Pod leads")
	}
	end := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	if !k.Clock.Now().Before(end) {
		return finding.Bad(logs, "the lease of %s expired at %s", *spec.HolderIdentity, end.UTC().Format(time.RFC3339))
	}
	return finding.Good("%s", *spec.HolderIdentity)
}

func (k *checker) audience(context.Context) finding.Outcome {
	if k.config.Audience != "" {
		return finding.Good("their audience is %s", k.config.Audience)
	}
	return finding.Caution("name an audience that the registries expect with: "+k.Command("pull-secrets install --audience NAME"),
		"tokens for registries without an audience of their own are tokens of the API server: a reader of such a Secret can act as its ServiceAccount")
}

func (k *checker) selection(ctx context.Context) finding.Outcome {
	var err error
	if k.found, err = inventory.Read(ctx, k.Client, "", inventory.PresetOf(k.config), k.Clock.Now()); err != nil {
		return finding.Broken(err)
	}
	if k.selected, err = k.selects(ctx); err != nil {
		return finding.Broken(err)
	}
	if len(k.selected) == 0 {
		return finding.Caution("opt in with: "+k.Kubectl("annotate namespace NAMESPACE", names.AnnotationPullSecret+"=true"), "no ServiceAccount is selected")
	}
	return finding.Good("ServiceAccounts: %d", len(k.selected))
}

// selects returns the ServiceAccounts that the controller selects: none in a namespace that
// is deleted.
func (k *checker) selects(ctx context.Context) ([]types.NamespacedName, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := k.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	namespaces := map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		namespaces[list.Items[i].Name] = &list.Items[i]
	}
	var selected []types.NamespacedName
	for _, account := range k.found.Accounts {
		namespace := namespaces[account.Namespace]
		if namespace == nil || namespace.DeletionTimestamp != nil || account.DeletionTimestamp != nil {
			continue
		}
		if k.config.Selects(account, namespace) {
			selected = append(selected, client.ObjectKeyFromObject(account))
		}
	}
	return selected, nil
}

// those returns the selected ServiceAccounts with a pull secret for which so returns true.
func (k *checker) those(so func(*inventory.PullSecret) bool) (list []types.NamespacedName) {
	for _, account := range k.selected {
		if secret := k.found.Of(account); secret != nil && so(secret) {
			list = append(list, account)
		}
	}
	return list
}

func (k *checker) existing(context.Context) finding.Outcome {
	var without []types.NamespacedName
	for _, account := range k.selected {
		secret := k.found.Of(account)
		if secret == nil || secret.State == inventory.StateLegacy && k.config.Preset != imagepull.OpenShift {
			without = append(without, account)
		}
	}
	switch {
	case len(without) == 0:
		return finding.Good("pull secrets: %d", len(k.selected))
	case k.config.OnlyUsed:
		return finding.Good("pull secrets: %d; without, because no workload uses them: %s", len(k.selected)-len(without), some(without))
	}
	return finding.Bad(k.events(without[0]), "without: %s", some(without))
}

// events returns the command that shows what the controller reports about a ServiceAccount.
func (k *checker) events(account types.NamespacedName) string {
	return "read the events: " + k.Kubectl("describe serviceaccount -n", account.Namespace, account.Name)
}

func (k *checker) usable(context.Context) finding.Outcome {
	bad := k.those(func(p *inventory.PullSecret) bool { return !p.Usable })
	if len(bad) == 0 {
		return finding.Good("none has expired")
	}
	first := k.found.Of(bad[0])
	return finding.Bad(k.events(bad[0]), "not those of: %s; the first one: %s: %s", some(bad), first.State, first.Message)
}

func (k *checker) listed(context.Context) finding.Outcome {
	if !k.config.Attach {
		return finding.Skip("the controller lists none, because of --attach=none")
	}
	missing := k.those(func(p *inventory.PullSecret) bool { return p.Usable && !p.Listed })
	if len(missing) == 0 {
		return finding.Good("new Pods get them")
	}
	return finding.Bad(k.events(missing[0]), "not listed by: %s; another manager may keep removing the entry", some(missing))
}

func (k *checker) late(context.Context) finding.Outcome {
	if len(k.found.Late) == 0 {
		return finding.Good("Pods that cannot pull name theirs")
	}
	first := k.found.Late[0]
	return finding.Bad("recreate them: "+k.Kubectl("delete pod -n", first.Namespace, first.Name),
		"these were created before their ServiceAccount listed it, and cannot pull: %s", some(k.found.Late))
}

// some names the first few of a list.
func some(list []types.NamespacedName) string {
	texts := make([]string, len(list))
	for i, name := range list {
		texts[i] = name.String()
	}
	return excerpt.List(texts, ", ")
}
