package grant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// recordKey is the key of the grant in the data of a record.
const recordKey = "grant.yaml"

// digestLength is the number of bytes of the digest in the name of a record.
const digestLength = 16

// record is a stored grant.
type record struct {
	driver driver.AuthType
	grant  driver.Grant
	object *corev1.ConfigMap
}

// newRecord returns the record of a grant that is not stored yet.
func newRecord(namespace string, by driver.AuthType, grant driver.Grant) (record, error) {
	if grant.Key == "" {
		return record{}, errors.New("the plan has no key")
	}
	text, err := yaml.Marshal(grant)
	if err != nil {
		return record{}, err
	}
	return record{driver: by, grant: grant, object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      recordName(by, grant.Key),
			Labels:    map[string]string{names.LabelClusterName: grant.Cluster, names.LabelGrant: string(by)},
		},
		Immutable: new(true),
		Data:      map[string]string{recordKey: string(text)},
	}}, nil
}

// recordName returns the name of the record of a key.
func recordName(by driver.AuthType, key string) string {
	digest := sha256.Sum256([]byte(string(by) + "\x00" + key))
	return fmt.Sprintf("registration-grant-%s-%s", by, hex.EncodeToString(digest[:digestLength]))
}

// Holder returns the name of the cluster that a driver granted a key to, from the
// records in the hub's namespace; empty if there is none.
func Holder(ctx context.Context, reader client.Reader, namespace string, by driver.AuthType, key string) (string, error) {
	var stored corev1.ConfigMap
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: recordName(by, key)}, &stored)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	cluster := stored.Labels[names.LabelClusterName]
	if cluster == "" {
		return "", fmt.Errorf("the record ConfigMap %s in namespace %s has no label %s; repair or delete it", stored.Name, namespace, names.LabelClusterName)
	}
	return cluster, nil
}

// parse reads a stored record.
func parse(object *corev1.ConfigMap) (record, error) {
	r := record{driver: driver.AuthType(object.Labels[names.LabelGrant]), object: object}
	if err := yaml.UnmarshalStrict([]byte(object.Data[recordKey]), &r.grant); err != nil {
		return r, fmt.Errorf("invalid record ConfigMap %s in namespace %s; repair or delete it: %w", object.Name, object.Namespace, err)
	}
	if cluster := object.Labels[names.LabelClusterName]; r.grant.Cluster != cluster {
		return r, fmt.Errorf("the record ConfigMap %s in namespace %s has the label of cluster %q and the grant of cluster %q; repair or delete it",
			object.Name, object.Namespace, cluster, r.grant.Cluster)
	}
	return r, nil
}

// same reports whether two records have the same grant.
func (r record) same(other record) bool {
	return r.object.Name == other.object.Name && r.driver == other.driver && equality.Semantic.DeepEqual(r.grant, other.grant)
}

// grantor returns the user who made a grant manually, empty if the hub made it.
func (r record) grantor() string { return r.object.Annotations[names.AnnotationGrantedBy] }

// store is where records are read from: an API server, or a cache that is indexed by
// the label of the cluster.
type store struct {
	client.Reader

	indexed bool
}

// list returns the records of a cluster in the namespace of a hub.
func list(ctx context.Context, reader store, namespace, cluster string) ([]record, error) {
	var ofCluster client.ListOption = client.MatchingLabels{names.LabelClusterName: cluster}
	if reader.indexed {
		ofCluster = labelindex.Is(names.LabelClusterName, cluster)
	}
	var found corev1.ConfigMapList
	err := reader.List(ctx, &found, client.InNamespace(namespace), ofCluster, client.HasLabels{names.LabelGrant})
	if err != nil {
		return nil, fmt.Errorf("records of grants of cluster %s: %w", cluster, err)
	}
	records := make([]record, len(found.Items))
	for i := range found.Items {
		if records[i], err = parse(&found.Items[i]); err != nil {
			return nil, &failure{names.ReasonRevokeFailed, err}
		}
	}
	return records, nil
}

// partition returns the records of a cluster: the wanted one as it is stored, nil if
// it is not, and the others. Wanted is nil if there should be none.
func partition(ctx context.Context, reader store, namespace, cluster string, wanted *record) (known *record, others []record, err error) {
	records, err := list(ctx, reader, namespace, cluster)
	for _, r := range records {
		if wanted != nil && r.same(*wanted) {
			known = &r
		} else {
			others = append(others, r)
		}
	}
	return known, others, err
}

// Recorded returns the grants of a driver that are recorded in the namespace of a
// hub, including those whose revocation is incomplete.
func Recorded(ctx context.Context, reader client.Reader, namespace string, by driver.AuthType) ([]driver.Grant, error) {
	var list corev1.ConfigMapList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{names.LabelGrant: string(by)})
	if err != nil {
		return nil, fmt.Errorf("records of grants: %w", err)
	}
	grants := make([]driver.Grant, len(list.Items))
	for i := range list.Items {
		known, err := parse(&list.Items[i])
		if err != nil {
			return nil, err
		}
		grants[i] = known.grant
	}
	return grants, nil
}

// Granted reports whether the condition of a cluster reports the grant of a key. A
// report about an earlier key of the cluster does not count: the messages of granted
// conditions name the key.
func Granted(cluster *clusterv1.ManagedCluster, key string) bool {
	c := condition(cluster)
	return c != nil && c.Status == metav1.ConditionTrue &&
		slices.ContainsFunc(strings.Fields(c.Message), func(word string) bool { return strings.Trim(word, ";.") == key })
}

// create stores a record. It returns a conflictError if another cluster has the key.
func (r *Reconciler) create(ctx context.Context, wanted record) error {
	err := r.Client.Create(ctx, wanted.object, Owner)
	if apierrors.IsAlreadyExists(err) {
		return r.conflict(ctx, r.Live, wanted)
	}
	if err != nil {
		return fmt.Errorf("record of the grant to cluster %s: %w", wanted.grant.Cluster, err)
	}
	return nil
}

// conflict returns a conflictError if another cluster has the key of a wanted record,
// as reader sees it.
func (r *Reconciler) conflict(ctx context.Context, reader client.Reader, wanted record) error {
	other, err := Holder(ctx, reader, wanted.object.Namespace, wanted.driver, wanted.grant.Key)
	if err != nil || other == "" || other == wanted.grant.Cluster {
		return err
	}
	return &conflictError{cluster: wanted.grant.Cluster, holder: other, key: wanted.grant.Key}
}

// conflictError is returned for the second cluster with one key.
type conflictError struct{ cluster, holder, key string }

// Error implements error.
func (e *conflictError) Error() string {
	return fmt.Sprintf("cluster %s has the identifier %s of cluster %s, which was accepted first; "+
		"detach cluster %s, or register cluster %s with its own identifier",
		e.cluster, e.key, e.holder, e.holder, e.cluster)
}

// remove deletes a record whose grant is revoked.
func remove(ctx context.Context, c client.Client, old record) error {
	err := c.Delete(ctx, old.object, client.Preconditions{UID: &old.object.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("record of the revoked grant of cluster %s: %w", old.grant.Cluster, err)
	}
	return nil
}
