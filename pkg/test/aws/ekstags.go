package aws

import (
	"encoding/json"
	"maps"
	"net/http"
)

// tagResource tags the cluster or access entry that the path names.
func (c *Cloud) tagResource(q *request) (any, error) {
	resource := q.path[1]
	tags := c.tagsOf(q.caller.account, resource)
	keys := map[string][]string{}
	if tags != nil {
		keys = tagContext("aws:ResourceTag", *tags)
	}
	if err := c.authorize(q, "eks:"+q.operation, resource, keys); err != nil {
		return nil, err
	}
	if tags == nil {
		return nil, fail(http.StatusNotFound, "NotFoundException", "Resource not found: %s", resource)
	}
	var in struct {
		Tags map[string]string `json:"tags"`
	}
	if err := json.Unmarshal(q.body, &in); err != nil {
		return nil, invalidParameter("%v", err)
	}
	added := map[string]string{}
	maps.Copy(added, *tags)
	maps.Copy(added, in.Tags)
	if err := checkTags(added); err != nil {
		return nil, err
	}
	*tags = added
	return object{}, nil
}

// tagsOf are the tags of a resource of an account, or nil.
func (c *Cloud) tagsOf(a account, resource string) *map[string]string {
	for _, k := range c.clusters {
		if k.arn.account != a.id || k.arn.partition != a.partition {
			continue
		}
		if k.ARN == resource {
			return &k.Tags
		}
		for _, e := range k.entries {
			if e.ARN == resource {
				return &e.Tags
			}
		}
	}
	return nil
}
