package agent

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/clusterid"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// agentNameLength is the length of a generated agent name.
const agentNameLength = 5

// identify returns the identity of the agent: the configured names, otherwise those of
// the stored credential, otherwise the recorded ones. Otherwise the cluster's name is
// its id, which a new installation finds again, or a generated one, and the agent's
// name is generated; both are recorded before they are used.
func (s *store) identify(ctx context.Context, hubSecret driver.Data) (driver.Identity, error) {
	id := driver.Identity{
		Cluster: first(s.names.Cluster, string(hubSecret[names.KeyClusterName])),
		Agent:   first(s.names.Agent, string(hubSecret[names.KeyAgentName])),
	}
	if id.Cluster == "" || id.Agent == "" {
		var err error
		if id, err = s.completeIdentity(ctx, id); err != nil {
			return id, err
		}
	}
	if err := names.ValidateClusterName(id.Cluster); err != nil {
		return id, err
	}
	if _, _, ok := names.ParseAgentUser(names.AgentUser(id.Cluster, id.Agent)); !ok {
		return id, fmt.Errorf("invalid agent name %q: must not be empty or contain a colon", id.Agent)
	}
	return id, nil
}

// completeIdentity sets the missing names of id from the ConfigMap, or generates and
// records them there.
func (s *store) completeIdentity(ctx context.Context, id driver.Identity) (driver.Identity, error) {
	var kept corev1.ConfigMap
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: names.AgentIdentityConfigMap}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return id, fmt.Errorf("get ConfigMap %s: %w", names.AgentIdentityConfigMap, err)
	}
	exists := err == nil
	id.Cluster = first(id.Cluster, kept.Data[names.KeyClusterName])
	id.Agent = first(id.Agent, kept.Data[names.KeyAgentName])
	complete := id.Cluster != "" && id.Agent != ""
	if id.Cluster == "" {
		id.Cluster = first(s.clusterID(ctx), string(uuid.NewUUID()))
	}
	if id.Agent == "" {
		id.Agent = utilrand.String(agentNameLength)
	}
	if complete {
		return id, nil
	}
	if kept.Data == nil {
		kept.Data = map[string]string{}
	}
	kept.Data[names.KeyClusterName], kept.Data[names.KeyAgentName] = id.Cluster, id.Agent
	if exists {
		err = s.writer.Update(ctx, &kept)
	} else {
		kept.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: names.AgentIdentityConfigMap}
		err = s.writer.Create(ctx, &kept)
	}
	if err != nil {
		return id, fmt.Errorf("write the cluster and agent names to ConfigMap %s: %w", names.AgentIdentityConfigMap, err)
	}
	return id, nil
}

// dropAgentName deletes a generated agent name when the Secret of the credential has
// it. If that Secret is lost later, the agent registers under a new name: the hub
// gives permissions to the user of one agent, so the same name would keep the lost
// credential valid.
func (s *store) dropAgentName(ctx context.Context) error {
	var kept corev1.ConfigMap
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: names.AgentIdentityConfigMap}, &kept)
	if err != nil || kept.Data[names.KeyAgentName] == "" {
		return client.IgnoreNotFound(err)
	}
	delete(kept.Data, names.KeyAgentName)
	if err := s.writer.Update(ctx, &kept); err != nil {
		return fmt.Errorf("update ConfigMap %s: %w", names.AgentIdentityConfigMap, err)
	}
	return nil
}

// clusterID returns the id of the managed cluster, empty if it is not a valid name.
func (s *store) clusterID(ctx context.Context) string {
	id, err := clusterid.Of(ctx, s.reader)
	if err != nil {
		s.log.V(1).Info("No cluster id", "reason", err.Error())
	}
	if names.ValidateClusterName(id) != nil {
		return ""
	}
	return id
}

func first(values ...string) string {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			return v
		}
	}
	return ""
}
