#!/bin/sh
# Installs what the build needs beyond Go, git and make: a C compiler, because
# the race detector of "go test -race" links against it. On a machine that has
# one this does nothing.
set -eu

cc=${CC:-gcc}
if command -v "$cc" >/dev/null 2>&1 && echo 'int main(void){return 0;}' | "$cc" -x c -o /dev/null - 2>/dev/null; then
	exit 0
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
	sudo=sudo
	command -v sudo >/dev/null 2>&1 || sudo=missing
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$sudo" = missing ]; then
	echo "The race detector needs a C compiler, and this script can only install one with apt-get as root." >&2
	echo "Install gcc and the C library's headers, then run make again." >&2
	exit 1
fi
echo "Installing gcc and libc6-dev for the race detector" >&2
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
