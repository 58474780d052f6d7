package names

// The field managers of the operators. Their objects have an annotation with the hash of
// what was applied, unlike those of OCM's operators, which have the same labels.
const (
	FieldManagerHubOperator   = "ocm.clustermanager"
	FieldManagerAgentOperator = "ocm.klusterlet"
)
