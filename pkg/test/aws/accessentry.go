package aws

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reserved are beginnings that names of users and groups must not have.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
var reserved = regexp.MustCompile(`^(system|eks|aws|amazon|iam):`)

// entryInput is the request to create or update an access entry.
type entryInput struct {
	PrincipalARN string            `json:"principalArn"`
	Username     string            `json:"username"`
	Type         string            `json:"type"`
	Groups       *[]string         `json:"kubernetesGroups"`
	Tags         map[string]string `json:"tags"`
	Token        string            `json:"clientRequestToken"`
}

func (q *request) entryInput() (entryInput, error) {
	var in entryInput
	if err := json.Unmarshal(q.body, &in); err != nil {
		return in, invalidParameter("%v", err)
	}
	names := []string{in.Username}
	if in.Groups != nil {
		names = append(names, *in.Groups...)
	}
	for i, name := range names {
		if found := reserved.FindString(name); found != "" {
			kind := "kubernetes group name"
			if i == 0 {
				kind = "username"
			}
			return in, invalidParameter("The %s %s is invalid, it cannot start with %s", kind, name, found)
		}
	}
	return in, checkTags(in.Tags)
}

// createAccessEntry also requires eks:TagResource if the entry has tags.
func (c *Cloud) createAccessEntry(q *request) (any, error) {
	in, err := q.entryInput()
	if err != nil {
		return nil, err
	}
	keys := merged(tagContext("aws:RequestTag", in.Tags), map[string][]string{"eks:principalArn": {in.PrincipalARN}})
	k, err := c.cluster(q, "", keys)
	if err != nil {
		return nil, err
	}
	r := c.roles[in.PrincipalARN]
	switch {
	case k.entries[in.PrincipalARN] != nil:
		return nil, fail(http.StatusConflict, "ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
	case r == nil || c.sightOf(r) == nil || r.arn.partition != k.arn.partition:
		return nil, invalidParameter("The specified principalArn is invalid: invalid principal.")
	case in.Type != "" && in.Type != "STANDARD":
		return nil, invalidParameter("access entries of type %s are not implemented here", in.Type)
	}
	e := c.newEntry(in, k, r)
	if len(in.Tags) > 0 {
		if err := c.authorize(q, "eks:TagResource", e.ARN, keys); err != nil {
			return nil, err
		}
	}
	k.entries[e.PrincipalARN] = e
	return object{"accessEntry": e.describe(k.arn.name())}, k.publish()
}

// newEntry is an access entry of a role as it is now. Without a user name it gets
// that of EKS.
func (c *Cloud) newEntry(in entryInput, k *cluster, r *role) *AccessEntry {
	e := &AccessEntry{
		ARN: k.entryARN(r.arn, unique("", 26)), PrincipalARN: r.ARN, RoleID: r.ID, Username: in.Username, Type: "STANDARD",
		Tags: in.Tags, created: c.now(), modified: c.now(),
	}
	if e.Username == "" {
		e.Username = arn{r.arn.partition, "sts", "", r.arn.account, "assumed-role/" + r.arn.name() + "/{{SessionName}}"}.String()
	}
	if in.Groups != nil {
		e.Groups = *in.Groups
	}
	return e
}

// entryARN is the ARN of an access entry of a role.
//
// Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (c *cluster) entryARN(of arn, id string) string {
	a := c.arn
	a.resource = strings.Join([]string{"access-entry", c.arn.name(), "role", of.account, of.name(), id}, "/")
	return a.String()
}

// AddAccessEntry puts an access entry into a cluster, or replaces that of its
// principal. It needs no role: those of deleted roles stay.
func (c *Cloud) AddAccessEntry(tb testing.TB, clusterARN string, added AccessEntry) {
	tb.Helper()
	of, err := parseARN(added.PrincipalARN)
	if err != nil {
		tb.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.clusters[clusterARN]
	if k == nil {
		tb.Fatalf("there is no cluster %s", clusterARN)
	}
	added.ARN, added.Type, added.created, added.modified = k.entryARN(of, unique("", 26)), "STANDARD", c.now(), c.now()
	k.entries[added.PrincipalARN] = &added
	if err := k.publish(); err != nil {
		tb.Fatal(err)
	}
}

func (c *Cloud) listAccessEntries(q *request) (any, error) {
	k, err := c.cluster(q, "", nil)
	if err != nil {
		return nil, err
	}
	var all list
	for _, principal := range slices.Sorted(maps.Keys(k.entries)) {
		all = append(all, principal)
	}
	return q.pagedEKS("accessEntries", all)
}

// onEntry finds the access entry that a request is about. Policies see its ARN,
// and one that ends with the principal when there is no entry.
func (c *Cloud) onEntry(do func(*request, *cluster, *AccessEntry) (any, error)) operation {
	return func(q *request) (any, error) {
		principalARN := q.path[3]
		of, err := parseARN(principalARN)
		if err != nil {
			return nil, invalidParameter("The specified principalArn is invalid: %v", err)
		}
		home, err := parseARN(q.clusterARN())
		if err != nil {
			return nil, err
		}
		resource := (&cluster{arn: home}).entryARN(of, "none")
		keys := map[string][]string{"eks:principalArn": {principalARN}}
		var e *AccessEntry
		if k := c.clusters[q.clusterARN()]; k != nil && k.entries[principalARN] != nil {
			e = k.entries[principalARN]
			resource, keys = e.ARN, merged(keys, tagContext("aws:ResourceTag", e.Tags))
		}
		k, err := c.cluster(q, resource, keys)
		if err != nil {
			return nil, err
		}
		if e == nil {
			return nil, missingResource("The specified principalArn could not be found. You must specify a principalArn that exists.")
		}
		return do(q, k, e)
	}
}

func (c *Cloud) describeAccessEntry(_ *request, k *cluster, e *AccessEntry) (any, error) {
	return object{"accessEntry": e.describe(k.arn.name())}, nil
}

// updateAccessEntry leaves alone what the request does not name, and the role
// that the entry was created for.
func (c *Cloud) updateAccessEntry(q *request, k *cluster, e *AccessEntry) (any, error) {
	in, err := q.entryInput()
	if err != nil {
		return nil, err
	}
	if in.Username != "" {
		e.Username = in.Username
	}
	if in.Groups != nil {
		e.Groups = *in.Groups
	}
	e.modified = c.now()
	return object{"accessEntry": e.describe(k.arn.name())}, k.publish()
}

func (c *Cloud) deleteAccessEntry(_ *request, k *cluster, e *AccessEntry) (any, error) {
	delete(k.entries, e.PrincipalARN)
	return object{}, k.publish()
}
