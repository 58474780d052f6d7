package aws

import "strconv"

// Association gives a role to the pods of a ServiceAccount, by EKS Pod Identity.
type Association struct {
	Namespace, ServiceAccount, RoleARN string
}

// associationARN is the ARN of a cluster's association with an id.
//
// Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (q *request) associationARN(id string) string {
	return arn{q.caller.partition, "eks", q.region, q.caller.account.id, "podidentityassociation/" + q.path[1] + "/" + id}.String()
}

// summary is an association in an answer. Its id is its place.
func (a Association) summary(q *request, i int) object {
	id := "a-" + strconv.Itoa(i)
	return object{
		"clusterName": q.path[1], "namespace": a.Namespace, "serviceAccount": a.ServiceAccount,
		"associationId": id, "associationArn": q.associationARN(id),
	}
}

func (c *Cloud) listPodIdentityAssociations(q *request) (any, error) {
	k, err := c.cluster(q, "", nil)
	if err != nil {
		return nil, err
	}
	query := q.http.URL.Query()
	var all list
	for i, a := range k.Associations {
		if wants(query.Get("namespace"), a.Namespace) && wants(query.Get("serviceAccount"), a.ServiceAccount) {
			all = append(all, a.summary(q, i))
		}
	}
	return q.pagedEKS("associations", all)
}

// wants reports whether a filter, which is empty for all, lets a value through.
func wants(filter, value string) bool { return filter == "" || filter == value }

func (c *Cloud) describePodIdentityAssociation(q *request) (any, error) {
	k, err := c.cluster(q, q.associationARN(q.path[3]), nil)
	if err != nil {
		return nil, err
	}
	for i, a := range k.Associations {
		if described := a.summary(q, i); described["associationId"] == q.path[3] {
			described["roleArn"] = a.RoleARN
			return object{"association": described}, nil
		}
	}
	return nil, missingResource("No association found with id: %s.", q.path[3])
}
