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

// details are the properties that differ between partitions.
type details struct {
	partition Partition
	// dnsSuffix is the domain of its endpoints.
	dnsSuffix string
	// regionPrefix is the common prefix of all its regions, except for aws.
	regionPrefix string
}

func table() []details {
	return []details{
		{AWS, "amazonaws.com", ""},
		{China, "amazonaws.com.cn", "cn-"},
		{GovCloud, "amazonaws.com", "us-gov-"},
		{ISO, "c2s.ic.gov", "us-iso-"},
		{ISOB, "sc2s.sgov.gov", "us-isob-"},
		{ISOE, "cloud.adc-e.uk", "eu-isoe-"},
		{ISOF, "csp.hci.ic.gov", "us-isof-"},
		{EUSC, "amazonaws.eu", "eusc-"},
	}
}

// DNSSuffix returns the domain of the endpoints of p, which is empty for an
// unknown partition.
func (p Partition) DNSSuffix() string {
	for _, d := range table() {
		if d.partition == p {
			return d.dnsSuffix
		}
	}
	return ""
}

// STSHost returns the host of the regional endpoint of the Security Token
// Service. The global endpoint exists in the partition aws only.
func (p Partition) STSHost(region string) string { return "sts." + region + "." + p.DNSSuffix() }

// known reports whether p is one of the partitions.
func (p Partition) known() bool { return p.DNSSuffix() != "" }

var regionForm = regexp.MustCompile(`^[a-z]{2,8}(-[a-z]{2,16}){1,2}-[0-9]{1,2}$`)

// has reports whether a region can be one of p. Regions are added all the time,
// so that their names are checked by form.
func (p Partition) has(region string) bool {
	if !regionForm.MatchString(region) {
		return false
	}
	for _, d := range table() {
		if d.regionPrefix != "" && strings.HasPrefix(region, d.regionPrefix) {
			return d.partition == p
		}
	}
	return p == AWS
}
