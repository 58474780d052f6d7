package checks

import "io"

// Print prints a report, with colors on a terminal.
func (r Report) Print(w io.Writer, terminal bool) error {
	return r.print(w, style{terminal: terminal, colored: terminal})
}
