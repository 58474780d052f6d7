package install

import "context"

// RunPhases runs the phases of a verb such as init in order, until one fails. s is what
// the phases share: what is wanted, and what they have found and done so far. Every phase
// can be run again after an interruption.
func RunPhases[S any](ctx context.Context, s S, phases ...func(S, context.Context) error) error {
	for _, phase := range phases {
		if err := phase(s, ctx); err != nil {
			return err
		}
	}
	return nil
}
