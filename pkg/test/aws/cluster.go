package aws

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"
	"time"
)

// Authentication modes of EKS clusters, which can only change in this order.
const (
	ConfigMap       = "CONFIG_MAP"
	APIAndConfigMap = "API_AND_CONFIG_MAP"
	API             = "API"
)

// Cluster is an EKS cluster.
type Cluster struct {
	// ARN names partition, region, account and name.
	ARN string
	// Endpoint is the address of its API server, CA its CA in PEM.
	Endpoint string
	CA       []byte
	// Issuer is the issuer of its ServiceAccounts' tokens.
	Issuer string
	// AuthenticationMode is APIAndConfigMap if it is empty.
	AuthenticationMode string
	// Tags are the cluster's tags.
	Tags map[string]string
	// Associations are its EKS Pod Identity associations.
	Associations []Association
	// EntriesFile, if set, is written with the access entries whenever they
	// change, for the backend DynamicFile of aws-iam-authenticator.
	EntriesFile string
}

// AccessEntry is an access entry of a cluster.
type AccessEntry struct {
	// ARN is the entry's own, PrincipalARN that of the role.
	ARN, PrincipalARN string
	// RoleID is the unique id that the role had when the entry was created. A role
	// that is recreated under that ARN is not let in.
	RoleID   string
	Username string
	Groups   []string
	Tags     map[string]string
	Type     string

	created, modified time.Time
}

// cluster is a cluster with its access entries by the principal's ARN.
type cluster struct {
	Cluster

	arn     arn
	entries map[string]*AccessEntry
	file    entriesFile
}

// AddCluster makes a cluster known, with no access entries. A cluster that is
// known already is replaced and keeps them.
func (c *Cloud) AddCluster(tb testing.TB, added Cluster) {
	tb.Helper()
	a, err := parseARN(added.ARN)
	if err != nil {
		tb.Fatal(err)
	}
	if added.AuthenticationMode == "" {
		added.AuthenticationMode = APIAndConfigMap
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[account{a.partition, a.account}] = true
	known := &cluster{Cluster: added, arn: a, entries: map[string]*AccessEntry{}, file: entriesFile{path: added.EntriesFile}}
	if old := c.clusters[added.ARN]; old != nil {
		known.entries = old.entries
		if old.EntriesFile == added.EntriesFile {
			known.file = old.file
		}
	}
	c.clusters[added.ARN] = known
	if err := known.publish(); err != nil {
		tb.Fatal(err)
	}
}

// Republish writes the file with a cluster's access entries again.
func (c *Cloud) Republish(tb testing.TB, clusterARN string) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.clusters[clusterARN].publish(); err != nil {
		tb.Fatal(err)
	}
}

// AccessEntries lists the access entries of a cluster by principal.
func (c *Cloud) AccessEntries(clusterARN string) []AccessEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var entries []AccessEntry
	if known := c.clusters[clusterARN]; known != nil {
		for _, key := range slices.Sorted(maps.Keys(known.entries)) {
			entry := *known.entries[key]
			entry.Groups, entry.Tags = slices.Clone(entry.Groups), maps.Clone(entry.Tags)
			entries = append(entries, entry)
		}
	}
	return entries
}

// describe is a cluster in an answer.
func (c *cluster) describe() object {
	return object{
		"name": c.arn.name(), "arn": c.ARN, "endpoint": c.Endpoint, "status": "ACTIVE", "tags": c.Tags,
		"certificateAuthority": object{"data": base64.StdEncoding.EncodeToString(c.CA)},
		"identity":             object{"oidc": object{"issuer": c.Issuer}},
		"accessConfig":         object{"authenticationMode": c.AuthenticationMode},
	}
}

// describe is an access entry in an answer. Times are seconds since 1970.
func (e *AccessEntry) describe(clusterName string) object {
	return object{
		"clusterName": clusterName, "principalArn": e.PrincipalARN, "accessEntryArn": e.ARN, "type": e.Type,
		"username": e.Username, "kubernetesGroups": append([]string{}, e.Groups...), "tags": e.Tags,
		"createdAt": e.created.Unix(), "modifiedAt": e.modified.Unix(),
	}
}

// publish writes the access entries for the authenticator.
func (c *cluster) publish() error {
	mappings := []roleMapping{}
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		e := c.entries[key]
		mappings = append(mappings, roleMapping{RoleARN: e.PrincipalARN, Username: e.Username, Groups: e.Groups, UserID: e.RoleID})
	}
	return c.file.write(mappings)
}
