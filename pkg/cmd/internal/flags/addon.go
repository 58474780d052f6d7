package flags

import "fmt"

const (
	// minTokenSeconds is the shortest life that the API server gives a token.
	minTokenSeconds = 600
	// advisedTokenSeconds is the shortest life that lets an add-on outlive an
	// hour without its hub.
	advisedTokenSeconds = 3600
)

// AddOnTokenSeconds checks how long the tokens of add-ons are valid; 0 is
// the default of one year. It returns what the user should know, or why it
// cannot be.
func AddOnTokenSeconds(flag string, seconds int64) (warning string, err error) {
	switch {
	case seconds < 0:
		return "", fmt.Errorf("--%s must not be negative", flag)
	case seconds == 0:
		return "", nil
	case seconds < minTokenSeconds:
		return "", fmt.Errorf("--%s must be 0 or at least %d", flag, minTokenSeconds)
	case seconds < advisedTokenSeconds:
		return fmt.Sprintf("tokens of %d seconds are for tests: in production use %d or more, so that a hub that is down for a while locks no add-on out",
			seconds, advisedTokenSeconds), nil
	}
	return "", nil
}
