package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// most is how many words are suggested.
const most = 3

// distance is how many letters a word may differ by from the one that was meant.
const distance = 2

// nearest returns those of words that a user may have meant by another one, by the measure
// that cobra has for commands.
func nearest(typed string, words []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: distance}
	for _, word := range words {
		all.AddCommand(&cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(typed)
}

// DidYouMean is what to try where a word is unknown: a question, or otherwise if no word is
// near.
func DidYouMean(typed string, words []string, otherwise string) string {
	near := nearest(typed, words)
	if len(near) == 0 {
		return otherwise
	}
	return "did you mean " + strings.Join(near[:min(most, len(near))], ", or ") + "?"
}

// UnknownCommand is the usage error about a subcommand that cmd does not have.
func UnknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			known = append(known, child.Name())
		}
	}
	return unknown(Usagef("%q is not a command of %q", name, cmd.CommandPath()), name, known)
}

// unknown adds what may have been meant to a usage error.
func unknown(err error, typed string, known []string) error {
	if explained, ok := errors.AsType[*Explained](err); ok {
		explained.Try = DidYouMean(typed, known, explained.Try)
	}
	return err
}
