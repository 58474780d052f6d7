package install

// Removal is how something is removed.
type Removal struct {
	// Force continues although objects remain or the operator does not respond.
	Force bool
	// Purge removes the operator as well when nothing else needs it.
	Purge bool
	// Works is the fate of the resources of ManifestWorks; with Force, they are
	// orphaned unless it says otherwise.
	Works Fate
}

// Chosen returns the fate of the resources of ManifestWorks.
func (l Removal) Chosen() Fate {
	if l.Works == "" && l.Force {
		return OrphanResources
	}
	return l.Works
}

// Fate says whether the resources of ManifestWorks remain after their agent is removed.
type Fate string

// The fates. Without one, an agent with works is not removed.
const (
	DeleteResources Fate = "delete"
	OrphanResources Fate = "orphan"
)
