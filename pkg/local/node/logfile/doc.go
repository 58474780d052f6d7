// Package logfile writes and reads the logs of containers: one file for each
// start of a container, each line with the time it was written at.
//
// A line is "TIME TAG TEXT": TIME is RFC 3339 with nanoseconds, TAG is F, or P
// for a part of a line that continues in the next one. The file is bounded: a
// container that writes more than MaxSize loses its oldest output.
package logfile
