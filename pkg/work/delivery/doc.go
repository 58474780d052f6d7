// Package delivery owns what an administrator does with ManifestWorks on the hub: it
// chooses the clusters, creates and changes the copies of a work there, deletes them or
// orphans what they applied, and waits for the agents.
//
// A work is delivered as one ManifestWork per cluster, each a copy of its own. The
// copies are planned first, with reads only, and a plan that one cluster blocks is
// carried out on none. A copy that another object on the hub owns, such as an add-on,
// is never changed.
//
// Orphaning is safe against the order of events: the work is deleted only after the
// agent reported the change that makes the resources stay, because an agent that sees
// both at once deletes them.
package delivery
