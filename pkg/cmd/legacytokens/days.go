package legacytokens

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// days is a flag value: a number of days. Labels of tokens hold dates, so nothing
// shorter is known.
type days int

var _ pflag.Value = (*days)(nil)

// String implements pflag.Value.
func (d *days) String() string { return fmt.Sprintf("%dd", *d) }

// Type implements pflag.Value.
func (d *days) Type() string { return "days" }

// Set implements pflag.Value.
func (d *days) Set(s string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(s, "d"))
	if err != nil || n < 0 {
		return errors.New("must be a number of days such as 30d")
	}
	*d = days(n)
	return nil
}
