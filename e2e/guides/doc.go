// Package guides runs the commands of the user's pages as they are written, in
// the order of the pages, on local clusters that the first page starts.
//
// A fenced block with the info string "sh run" is run, and has to succeed. A
// block "text output" right after it is what it must print; "..." stands for
// any text, and runs of blanks count as one. A block "sh cleanup" runs at the
// end.
package guides
