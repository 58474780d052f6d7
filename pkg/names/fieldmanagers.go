package names

// The field managers. The objects of the operators have an annotation with the hash of what
// was applied, unlike those of OCM's operators, which have the same labels. Commands own what
// they apply and patch as FieldManagerCLI.
const (
	FieldManagerHubOperator   = "ocm.clustermanager"
	FieldManagerAgentOperator = "ocm.klusterlet"
	FieldManagerCLI           = "ocm.cli"
)
