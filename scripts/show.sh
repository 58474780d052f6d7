# shellcheck shell=bash
# Functions that the demos print with: sourced, not run.

# say prints a command as it would be typed, bold on a terminal.
say() {
	if [[ -t 1 ]]; then
		printf '\n\033[1m$ %s\033[0m\n' "$*"
	else
		printf '\n$ %s\n' "$*"
	fi
}

# show runs a command that it says.
show() {
	say "$@"
	"$@"
}

# quietly does the same and keeps what the command prints to itself.
quietly() {
	say "$@"
	"$@" >/dev/null
}
