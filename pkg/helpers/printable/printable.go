package printable

import (
	"strconv"
	"strings"
)

// Line makes a text one line of visible characters. Text from other machines can have
// several lines, and must not be able to command the terminal, reverse the reading
// direction, or be invisible. Such characters are shown as their escapes, \u202e for
// one.
func Line(text string) string {
	text = strings.NewReplacer("\r\n", "; ", "\n", "; ", "\t", " ").Replace(strings.ToValidUTF8(text, "\ufffd"))
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unseen(r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// unseen reports whether a character is no letter, mark, number, symbol, punctuation or
// plain space: the controls of a terminal and of bidirectional text, and what has no width.
func unseen(r rune) bool { return r != ' ' && !strconv.IsPrint(r) }
