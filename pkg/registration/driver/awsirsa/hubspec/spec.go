package hubspec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Spec is the administrator's input, as written.
type Spec struct {
	// Cluster is the ARN of the hub's EKS cluster.
	Cluster string
	// Approved are regular expressions for the ARNs of clusters that are accepted
	// without a person.
	Approved []string
	// Tags are key=value, for the roles and access entries that the hub creates.
	Tags []string
	// Mapping is how roles are mapped to users of the hub; empty means auto.
	Mapping string
	// Creator is the ARN of the registration controller's role; empty means the
	// role of the default name.
	Creator string
	// PodIdentity is "true" or "false", which empty means: whether agents may use
	// sessions of EKS Pod Identity.
	PodIdentity string
}

// Names are the names of a Spec's parts in its source, such as flags. Errors begin with
// them.
type Names struct {
	Cluster, Approved, Tags, Mapping, Creator, PodIdentity string
}

// The flags of a Spec, which commands and the controller share.
const (
	FlagCluster     = "hub-cluster-arn"
	FlagApproved    = "auto-approved-arn-patterns"
	FlagTags        = "aws-resource-tags"
	FlagMapping     = "aws-identity-mapping"
	FlagCreator     = identity.CreatorRoleFlag
	FlagPodIdentity = "aws-pod-identity"
)

// FlagNames returns the names of flags.
func FlagNames() Names {
	return Names{
		Cluster: "--" + FlagCluster, Approved: "--" + FlagApproved, Tags: "--" + FlagTags,
		Mapping: "--" + FlagMapping, Creator: "--" + FlagCreator, PodIdentity: "--" + FlagPodIdentity,
	}
}

// FieldNames returns the names of the fields and annotations of a ClusterManager.
func FieldNames() Names {
	const path = "spec.registrationConfiguration.registrationDrivers[awsirsa].awsirsa."
	return Names{
		Cluster: path + "hubClusterArn", Approved: path + "autoApprovedIdentities", Tags: path + "tags",
		Mapping:     "the annotation " + AnnotationMapping,
		Creator:     "the annotation " + AnnotationCreator,
		PodIdentity: "the annotation " + AnnotationPodIdentity,
	}
}

// Of returns what a ClusterManager says, and false if its hub does not register
// clusters by AWS IAM.
func Of(cm *operatorv1.ClusterManager) (Spec, bool) {
	c := cm.Spec.RegistrationConfiguration
	if c == nil {
		return Spec{}, false
	}
	i := slices.IndexFunc(c.RegistrationDrivers, func(d operatorv1.RegistrationDriverHub) bool { return identity.Is(d.AuthType) })
	if i < 0 {
		return Spec{}, false
	}
	return From(driver.HubSettings{Driver: c.RegistrationDrivers[i], Annotations: cm.Annotations}), true
}

// From returns what the settings of the driver say.
func From(settings driver.HubSettings) Spec {
	s := Spec{
		Mapping:     settings.Annotations[AnnotationMapping],
		Creator:     settings.Annotations[AnnotationCreator],
		PodIdentity: settings.Annotations[AnnotationPodIdentity],
	}
	if config := settings.Driver.AwsIrsa; config != nil {
		s.Cluster, s.Approved, s.Tags = config.HubClusterArn, config.AutoApprovedIdentities, config.Tags
	}
	return s
}

// Over returns s, with the parts that it leaves out taken from before. A list that is
// empty but not nil is not left out.
func (s Spec) Over(before Spec) Spec {
	if s.Approved == nil {
		s.Approved = before.Approved
	}
	if s.Tags == nil {
		s.Tags = before.Tags
	}
	s.Cluster = cmp.Or(s.Cluster, before.Cluster)
	s.Mapping = cmp.Or(s.Mapping, before.Mapping)
	s.Creator = cmp.Or(s.Creator, before.Creator)
	s.PodIdentity = cmp.Or(s.PodIdentity, before.PodIdentity)
	return s
}

// Driver returns the part of a Spec that is in the spec of a ClusterManager.
func (s Spec) Driver() operatorv1.RegistrationDriverHub {
	return operatorv1.RegistrationDriverHub{
		AuthType: string(identity.AuthType),
		AwsIrsa:  &operatorv1.AwsIrsaConfig{HubClusterArn: s.Cluster, AutoApprovedIdentities: s.Approved, Tags: s.Tags},
	}
}

// Annotations returns the part of a Spec that is in the annotations of a
// ClusterManager: what is said, and nothing for what is not.
func (s Spec) Annotations() map[string]string {
	said := map[string]string{}
	for key, value := range map[string]string{
		AnnotationMapping:     s.Mapping,
		AnnotationCreator:     s.Creator,
		AnnotationPodIdentity: s.PodIdentity,
	} {
		if value != "" {
			said[key] = value
		}
	}
	return said
}

// Config returns what the driver is configured with. It sends no request.
func (s Spec) Config(called Names) (awsirsa.HubConfig, error) {
	cluster, errCluster := s.cluster()
	patterns, errPatterns := awsirsa.ParsePatterns(s.Approved)
	tags, errTags := awsirsa.ParseTags(s.Tags)
	mapping, errMapping := s.mapping()
	podIdentity, errPodIdentity := s.podIdentity()
	config := awsirsa.HubConfig{Cluster: cluster, Approved: patterns, Tags: tags, Mapping: mapping, PodIdentity: podIdentity}
	return config, errors.Join(
		about(called.Cluster, errCluster), about(called.Approved, errPatterns), about(called.Tags, errTags),
		about(called.Mapping, errMapping), about(called.PodIdentity, errPodIdentity),
	)
}

// Role returns the IAM role of the registration controller.
func (s Spec) Role(called Names) (awsarn.Role, error) {
	cluster, err := s.cluster()
	if err != nil {
		return awsarn.Role{}, about(called.Cluster, err)
	}
	if s.Creator == "" {
		role, err := identity.CreatorRole(cluster)
		if err != nil {
			err = fmt.Errorf("%w; create a role with a shorter name, and set its ARN here", err)
		}
		return role, about(called.Creator, err)
	}
	role, err := awsarn.ParseRole(s.Creator)
	if err == nil {
		err = identity.CheckOwner(role, cluster)
	}
	return role, about(called.Creator, err)
}

// Validate returns everything that is wrong with a Spec.
func (s Spec) Validate(called Names) error {
	_, err := s.Config(called)
	if _, errCluster := s.cluster(); errCluster != nil {
		return err // The role is of the cluster's account.
	}
	_, errRole := s.Role(called)
	return errors.Join(err, errRole)
}

// UsesAWSAuth reports whether the hub may map roles in the ConfigMap aws-auth.
func (s Spec) UsesAWSAuth() bool {
	mapping, err := s.mapping()
	return err == nil && mapping != awsirsa.MapAccessEntry
}

func (s Spec) cluster() (awsarn.Cluster, error) {
	if s.Cluster == "" {
		return awsarn.Cluster{}, errors.New("the registration driver awsirsa needs it")
	}
	return awsarn.ParseCluster(s.Cluster)
}

func (s Spec) mapping() (awsirsa.MappingMode, error) {
	if s.Mapping == "" {
		return awsirsa.MapAuto, nil
	}
	return awsirsa.ParseMapping(s.Mapping)
}

func (s Spec) podIdentity() (bool, error) {
	switch s.PodIdentity {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s.PodIdentity)
}

// about prefixes an error with the name of its subject; nil if there is no error.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
