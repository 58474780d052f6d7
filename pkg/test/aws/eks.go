package aws

import (
	"net/http"
	"slices"
	"strings"
)

// eksOperation is the operation that a method and a path stand for.
func eksOperation(method string, path []string) string {
	switch {
	case path[0] == "tags" && len(path) == 2:
		return map[string]string{"POST": "TagResource"}[method]
	case path[0] != "clusters":
		return ""
	case len(path) == 1:
		return map[string]string{"GET": "ListClusters"}[method]
	case len(path) == 2:
		return map[string]string{"GET": "DescribeCluster"}[method]
	case path[2] == "pod-identity-associations" && method == http.MethodGet:
		return map[int]string{3: "ListPodIdentityAssociations", 4: "DescribePodIdentityAssociation"}[len(path)]
	case path[2] != "access-entries":
		return ""
	case len(path) == 3:
		return map[string]string{"POST": "CreateAccessEntry", "GET": "ListAccessEntries"}[method]
	case len(path) == 4:
		return map[string]string{"GET": "DescribeAccessEntry", "POST": "UpdateAccessEntry", "DELETE": "DeleteAccessEntry"}[method]
	}
	return ""
}

func (c *Cloud) eksOperations() map[string]operation {
	return map[string]operation{
		"ListClusters":                   c.listClusters,
		"DescribeCluster":                c.describeCluster,
		"CreateAccessEntry":              c.createAccessEntry,
		"ListAccessEntries":              c.listAccessEntries,
		"DescribeAccessEntry":            c.onEntry(c.describeAccessEntry),
		"UpdateAccessEntry":              c.onEntry(c.updateAccessEntry),
		"DeleteAccessEntry":              c.onEntry(c.deleteAccessEntry),
		"ListPodIdentityAssociations":    c.listPodIdentityAssociations,
		"DescribePodIdentityAssociation": c.describePodIdentityAssociation,
		"TagResource":                    c.tagResource,
	}
}

// clusterARN is the ARN of the cluster that the path names, in the region of the
// endpoint and the account of the caller.
func (q *request) clusterARN() string {
	return arn{q.caller.partition, "eks", q.region, q.caller.account.id, "cluster/" + q.path[1]}.String()
}

// cluster is the cluster that the path names, after the caller was authorized to
// act on resource, which is the cluster itself if empty.
func (c *Cloud) cluster(q *request, resource string, keys map[string][]string) (*cluster, error) {
	found := c.clusters[q.clusterARN()]
	if found != nil {
		keys = merged(keys, tagContext("aws:ResourceTag", found.Tags))
	}
	if resource == "" {
		resource = q.clusterARN()
	}
	if err := c.authorize(q, "eks:"+q.operation, resource, keys); err != nil {
		return nil, err
	}
	switch {
	case found == nil:
		return nil, missingResource("No cluster found for name: %s.", q.path[1])
	case found.AuthenticationMode == ConfigMap && strings.Contains(q.operation, "AccessEntr"):
		return nil, fail(http.StatusBadRequest, "InvalidRequestException",
			"The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
	}
	return found, nil
}

func missingResource(format string, args ...any) error {
	return fail(http.StatusNotFound, "ResourceNotFoundException", format, args...)
}

func invalidParameter(format string, args ...any) error {
	return fail(http.StatusBadRequest, "InvalidParameterException", format, args...)
}

// listClusters can be allowed on all clusters only.
func (c *Cloud) listClusters(q *request) (any, error) {
	if err := c.authorize(q, "eks:ListClusters", "*", nil); err != nil {
		return nil, err
	}
	found := []string{}
	for _, k := range c.clusters {
		if k.arn.account == q.caller.account.id && k.arn.partition == q.caller.partition && k.arn.region == q.region {
			found = append(found, k.arn.name())
		}
	}
	slices.Sort(found)
	return object{"clusters": found}, nil
}

func (c *Cloud) describeCluster(q *request) (any, error) {
	k, err := c.cluster(q, "", nil)
	if err != nil {
		return nil, err
	}
	return object{"cluster": k.describe()}, nil
}
