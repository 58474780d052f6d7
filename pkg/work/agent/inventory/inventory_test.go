package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
)

const patience = await.Patience

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, &plane)
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

// notes are the notifications of an inventory.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(subscriber string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, subscriber)
}

// take returns and forgets the notifications.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

func (n *notes) await(t *testing.T, subscriber string) {
	t.Helper()
	await.Success(t, patience, subscriber+" is notified", func(context.Context) error {
		if all := n.take(); !slices.Contains(all, subscriber) {
			return fmt.Errorf("notified: %v", all)
		}
		return nil
	})
}

func start(t *testing.T, user string) (*inventory.Inventory, *notes) {
	t.Helper()
	config := plane.Config(t)
	if user != "" {
		config = plane.ConfigFor(t, user)
	}
	c, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{}
	i := inventory.New(c, n.add)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = i.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return i, n
}

func key(name string) inventory.Key {
	return inventory.Key{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: "default", Name: name}
}

func reaches(t *testing.T, i *inventory.Inventory, state inventory.State) {
	t.Helper()
	await.Condition(t, patience, fmt.Sprintf("state %d", state), func(context.Context) (bool, error) { return i.State(key("").Resource) == state, nil })
}

// TestInventory follows an object from before its creation to after its deletion.
func TestInventory(t *testing.T) {
	t.Parallel()
	i, n := start(t, "")
	admin := plane.Client(t)
	i.Subscribe("one", []inventory.Interest{{Key: key("watched")}})
	n.await(t, "one") // When the list is complete.
	reaches(t, i, inventory.Watched)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "watched"}}
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	n.await(t, "one")
	if known, ok := i.Object(key("watched")); !ok || known.UID != object.UID {
		t.Errorf("got %+v, %v", known, ok)
	}
	// What a request returned is no news when its event comes; the next change is.
	object.Data = map[string]string{"key": "ours"}
	if err := admin.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	i.Observe(key("watched"), object)
	if err := admin.Delete(t.Context(), object, client.Preconditions{UID: &object.UID}); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the deletion", func(context.Context) error {
		if _, ok := i.Object(key("watched")); ok {
			return errors.New("it is known")
		}
		return nil
	})
	// A request that was made before the deletion returns after it.
	i.Observe(key("watched"), object)
	if _, ok := i.Object(key("watched")); ok {
		t.Error("an object that was deleted is known again")
	}
	i.Subscribe("one", nil)
	if state := i.State(key("").Resource); state != inventory.Unwatched {
		t.Errorf("without subscriptions the state is %d", state)
	}
}

// TestOwned keeps objects with an AppliedManifestWork as owner, and no others, without
// a subscription to them.
func TestOwned(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "")
	admin := plane.Client(t)
	owner := metav1.OwnerReference{APIVersion: "work.open-cluster-management.io/v1", Kind: inventory.OwnerKind, Name: "a", UID: "some-uid"}
	for _, object := range []metav1.ObjectMeta{{Name: "free"}, {Name: "owned", OwnerReferences: []metav1.OwnerReference{owner}}} {
		object.Namespace = "default"
		if err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: object}); err != nil {
			t.Fatal(err)
		}
	}
	i.Subscribe("one", []inventory.Interest{{Key: key("other")}})
	reaches(t, i, inventory.Watched)
	// The first list is from the API server's cache, which may lack what was created a moment
	// ago. Events are in order: with the second object, the first was seen.
	await.Condition(t, patience, "the owned object", func(context.Context) (bool, error) {
		_, ok := i.Owned("some-uid")[key("owned")]
		return ok, nil
	})
	if owned := i.Owned("some-uid"); len(owned) != 1 {
		t.Errorf("owned: %v", owned)
	}
	if _, ok := i.Object(key("free")); ok {
		t.Error("an object without an owner is kept")
	}
}

// TestUnwatched has no permission to watch.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	i, n := start(t, "nobody")
	i.Subscribe("one", []inventory.Interest{{Key: key("any")}})
	n.await(t, "one")
	reaches(t, i, inventory.Unwatched)
}
