package awsarn

import (
	"regexp"
	"strings"
)

// Partition is a group of AWS regions with accounts of its own. No role of one
// partition can be assumed from another.
type Partition string

// The partitions, as botocore's partitions.json lists them.
const (
	AWS      Partition = "aws"
	China    Partition = "aws-cn"
	GovCloud Partition = "aws-us-gov"
	ISO      Partition = "aws-iso"
	ISOB     Partition = "aws-iso-b"
	ISOE     Partition = "aws-iso-e"
	ISOF     Partition = "aws-iso-f"
	EUSC     Partition = "aws-eusc"
)

// Partitions returns all partitions.
func Partitions() []Partition {
	return []Partition{AWS, China, GovCloud, ISO, ISOB, ISOE, ISOF, EUSC}
}

// DNSSuffix returns the domain of the endpoints of p, which is empty for an
// unknown partition.
func (p Partition) DNSSuffix() string {
	switch p {
	case AWS, GovCloud:
		return "amazonaws.com"
	case China:
		return "amazonaws.com.cn"
	case ISO:
		return "c2s.ic.gov"
	case ISOB:
		return "sc2s.sgov.gov"
	case ISOE:
		return "cloud.adc-e.uk"
	case ISOF:
		return "csp.hci.ic.gov"
	case EUSC:
		return "amazonaws.eu"
	}
	return ""
}

// STSHost returns the host of the regional endpoint of the Security Token
// Service. The global endpoint exists in the partition aws only.
func (p Partition) STSHost(region string) string { return "sts." + region + "." + p.DNSSuffix() }

// known reports whether p is one of Partitions.
func (p Partition) known() bool { return p.DNSSuffix() != "" }

// regionPrefix is what all regions of a partition, but those of aws, begin with.
func (p Partition) regionPrefix() string {
	switch p {
	case AWS:
	case China:
		return "cn-"
	case GovCloud:
		return "us-gov-"
	case ISO:
		return "us-iso-"
	case ISOB:
		return "us-isob-"
	case ISOE:
		return "eu-isoe-"
	case ISOF:
		return "us-isof-"
	case EUSC:
		return "eusc-"
	}
	return ""
}

var regionForm = regexp.MustCompile(`^[a-z]{2,8}(-[a-z]{2,16}){1,2}-[0-9]{1,2}$`)

// has reports whether a region can be one of p. Regions are added all the time,
// so that their names are checked by form.
func (p Partition) has(region string) bool {
	if !regionForm.MatchString(region) {
		return false
	}
	for _, other := range Partitions() {
		if prefix := other.regionPrefix(); prefix != "" && strings.HasPrefix(region, prefix) {
			return other == p
		}
	}
	return p == AWS
}
