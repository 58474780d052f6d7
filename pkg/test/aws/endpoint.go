package aws

import (
	"slices"
	"strings"
)

// endpoint is the service behind a host of AWS.
type endpoint struct {
	service, partition string
	// region is the region in the signatures of requests to the host.
	region string
}

// parseEndpoint understands the hosts of STS, IAM and EKS in all partitions: with
// a region and global, dual-stack and FIPS. It reports false for every other.
//
// Source: https://docs.aws.amazon.com/general/latest/gr/rande.html
func parseEndpoint(host string) (endpoint, bool) {
	name, china := strings.CutSuffix(host, ".amazonaws.com.cn")
	name, plain := strings.CutSuffix(name, ".amazonaws.com")
	name, dual := strings.CutSuffix(name, ".api.aws")
	if !china && !plain && !dual {
		return endpoint{}, false
	}
	labels := strings.Split(strings.TrimPrefix(name, "fips."), ".")
	e := endpoint{service: strings.TrimSuffix(labels[0], "-fips")}
	if len(labels) > 2 || !slices.Contains([]string{"sts", "iam", "eks"}, e.service) {
		return endpoint{}, false
	}
	if len(labels) == 2 {
		e.region = labels[1]
	}
	e.partition = partitionOf(e.region)
	switch {
	case e.service == "iam" && e.region == "us-gov":
		e.region = "us-gov-west-1"
	case e.region == "" && e.service != "eks":
		e.region = "us-east-1"
	}
	return e, e.region != "" && china == (e.partition == "aws-cn")
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov"):
		return "aws-us-gov"
	default:
		return "aws"
	}
}

// intercepted reports whether a host is answered for.
func intercepted(host string) bool {
	_, ok := parseEndpoint(host)
	return ok
}
