package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// FakeType is the name of the fake driver.
const FakeType driver.AuthType = "fake"

// identityPrefix begins the annotation of a cluster that registers with the fake
// driver; its identifier follows.
const identityPrefix = "fake:"

// FakeAnnotation is the annotation that identifies a ManagedCluster to the fake driver.
const FakeAnnotation = names.AnnotationAgentPrefix + "fake-identity"

// FakeIdentity is the annotation, with its value, of a cluster that registers with
// the fake driver under an identifier.
func FakeIdentity(id string) map[string]string {
	return map[string]string{FakeAnnotation: identityPrefix + id}
}

// Outside is an outside service in memory, as unreliable as a test wants it: it
// has roles, and entries that map a role to a group. An entry needs its role. Its
// methods may be called from any goroutine.
type Outside struct {
	mu sync.Mutex
	// objects are the roles and entries by kind and name, with their content.
	objects map[string]string
	// calls and writes count the requests, denied or not, and the changes.
	calls, writes int
	// left is the number of calls that succeed before the service fails; negative means
	// no limit.
	left int
	// lost says that the call at which the service begins to fail is obeyed and
	// only its answer is an error.
	lost bool
	// broken are the identifiers about which the service fails.
	broken map[string]bool
	// settling is how many times a new role cannot be used yet.
	settling int
}

// NewOutside returns a service that works.
func NewOutside() *Outside {
	return &Outside{objects: map[string]string{}, broken: map[string]bool{}, left: -1}
}

// errOutage is the answer of a service that fails.
var errOutage = errors.New("the fake service answers 503; try again later")

// errNotFound is the answer about what does not exist.
var errNotFound = errors.New("not found")

// Fail has the service fail after the next calls; negative lets all calls through
// again. If lost, the first call that fails is obeyed nevertheless.
func (o *Outside) Fail(after int, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left, o.lost = after, lost
}

// Break makes the service fail for one identifier, until it is repaired.
func (o *Outside) Break(id string) { o.setBroken(id, true) }

// Repair ends what Break began.
func (o *Outside) Repair(id string) { o.setBroken(id, false) }

func (o *Outside) setBroken(id string, broken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken[id] = broken
}

// Settle has a new role be of no use for a number of tries.
func (o *Outside) Settle(tries int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settling = tries
}

// Calls returns how many requests there were, and how many changed something.
func (o *Outside) Calls() (calls, writes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls, o.writes
}

// Objects lists what exists, sorted.
func (o *Outside) Objects() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for name, content := range o.objects {
		found = append(found, name+" is "+content)
	}
	return slices.Sorted(slices.Values(found))
}

// Set changes an object without a driver; the empty content removes it.
func (o *Outside) Set(name, content string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[name] = content
	if content == "" {
		delete(o.objects, name)
	}
}

// call makes one request about an object.
func (o *Outside) call(name string, do func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	switch {
	case o.left == 0 && o.lost:
		o.lost = false
		_ = do() // The response is lost.
		return errOutage
	case o.left == 0, o.broken[name[strings.Index(name, "/")+1:]]:
		return errOutage
	case o.left > 0:
		o.left--
	}
	return do()
}

func (o *Outside) get(name string) (content string, err error) {
	err = o.call(name, func() error {
		found, ok := o.objects[name]
		if !ok {
			return errNotFound
		}
		content = found
		return nil
	})
	return content, err
}

func (o *Outside) put(name, content, needs string) error {
	return o.call(name, func() error {
		if _, ok := o.objects[needs]; needs != "" && (!ok || o.settling > 0) {
			o.settling--
			return errNotFound
		}
		o.writes++
		o.objects[name] = content
		return nil
	})
}

func (o *Outside) remove(name string) error {
	return o.call(name, func() error {
		if _, ok := o.objects[name]; !ok {
			return errNotFound
		}
		o.writes++
		delete(o.objects, name)
		return nil
	})
}

var _ driver.Granter = (*FakeGranter)(nil)

// FakeGranter is a driver on the hub whose clusters have an identity of the service
// Outside. It has no state that another process could not read.
type FakeGranter struct {
	// Outside is the service.
	Outside *Outside
	// Name is the driver under whose name grants are recorded; empty means FakeType.
	Name driver.AuthType
	// AdmitPrefix begins the identifiers that need no person.
	AdmitPrefix string
	// Check is Progress.After of a grant that is made.
	Check time.Duration
}

// Objection implements driver.Hub.
func (g *FakeGranter) Objection(cluster *clusterv1.ManagedCluster) string {
	plan, err := g.Plan(cluster)
	switch {
	case err != nil:
		return err.Error()
	case plan != nil && !strings.HasPrefix(plan.Key, g.AdmitPrefix):
		return fmt.Sprintf("the identifier %s does not begin with %q", plan.Key, g.AdmitPrefix)
	}
	return ""
}

// Type implements driver.Granter.
func (g *FakeGranter) Type() driver.AuthType { return cmp.Or(g.Name, FakeType) }

// Plan implements driver.Granter.
func (g *FakeGranter) Plan(cluster *clusterv1.ManagedCluster) (*driver.Grant, error) {
	value, ok := cluster.Annotations[FakeAnnotation]
	if !ok {
		return nil, nil
	}
	id, ok := strings.CutPrefix(value, identityPrefix)
	if !ok || id == "" {
		return nil, fmt.Errorf("the annotation %s of cluster %s is %q; it begins with %s and an identifier follows",
			FakeAnnotation, cluster.Name, value, identityPrefix)
	}
	group := names.MappedClusterGroup(cluster.Name)
	return &driver.Grant{
		Cluster:  cluster.Name,
		Key:      id,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		Data:     map[string]string{"role": FakeRole(id), "entry": FakeEntry(id)},
	}, nil
}

// FakeRole and FakeEntry are the objects that are granted under an identifier.
func FakeRole(id string) string { return "role/" + id }

// FakeEntry is documented at FakeRole.
func FakeEntry(id string) string { return "entry/" + id }

// Grant implements driver.Granter.
func (g *FakeGranter) Grant(_ context.Context, grant driver.Grant) (driver.Progress, error) {
	if err := g.ensure(grant.Data["role"], "trusting "+grant.Key, ""); err != nil {
		return driver.Progress{}, err
	}
	err := g.ensure(grant.Data["entry"], "group "+grant.Subjects[0].Name, grant.Data["role"])
	if errors.Is(err, errNotFound) {
		return driver.Progress{Waiting: "The fake service does not know its new " + grant.Data["role"] + " yet", After: time.Second}, nil
	}
	return driver.Progress{After: g.Check}, err
}

func (g *FakeGranter) ensure(name, content, needs string) error {
	got, err := g.Outside.get(name)
	if err == nil && got == content {
		return nil
	}
	if err == nil || errors.Is(err, errNotFound) {
		err = g.Outside.put(name, content, needs)
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	return nil
}

// Revoke implements driver.Granter.
func (g *FakeGranter) Revoke(_ context.Context, grant driver.Grant) error {
	for _, name := range []string{grant.Data["entry"], grant.Data["role"]} {
		if err := g.Outside.remove(name); err != nil && !errors.Is(err, errNotFound) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
