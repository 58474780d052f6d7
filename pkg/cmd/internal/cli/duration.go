package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	errNoDuration = errors.New("must be a duration such as 90s or 5m")
	errNoSeconds  = errors.New("must be a number of seconds, or a duration of whole seconds such as 90s or 24h")
)

// Durations has every flag of a command tree that is a duration take a bare number of
// seconds, as clusteradm's and kubectl's do, and every flag of seconds a duration.
func Durations(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(flag *pflag.Flag) {
			switch {
			case flag.Value.Type() == "duration":
				flag.Value = durationValue{flag.Value}
			case strings.HasPrefix(flag.Value.Type(), "int") && strings.HasSuffix(flag.Name, "seconds"):
				Seconds(flag)
			}
		})
	}
	for _, child := range cmd.Commands() {
		Durations(child)
	}
}

// Seconds has a flag that is a number of seconds take a duration.
func Seconds(flag *pflag.Flag) { flag.Value = secondsValue{flag.Value} }

// durationValue is a duration, or a bare number of seconds.
type durationValue struct{ pflag.Value }

// Set implements pflag.Value.
func (v durationValue) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	return v.Value.Set(d.String())
}

// secondsValue is a number of seconds, or a duration.
type secondsValue struct{ pflag.Value }

// Set implements pflag.Value.
func (v secondsValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil && d%time.Second == 0 {
		s = strconv.FormatInt(int64(d/time.Second), 10)
	}
	if err := v.Value.Set(s); err != nil {
		return errNoSeconds
	}
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errNoDuration
	}
	return d, nil
}
