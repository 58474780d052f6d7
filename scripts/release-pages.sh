#!/usr/bin/env bash
# Writes the manual pages and the completions of a release to a directory. They are
# dated by the commit, so that they are the same each time.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

rm -rf "$dir"
mkdir -p "$dir/completions"
go run -ldflags "${LDFLAGS:-}" ./cmd/generate-cli-reference -man "$dir/man/man1"
bin/kubectl-ocm completion bash >"$dir/completions/kubectl-ocm.bash"
bin/kubectl-ocm completion zsh >"$dir/completions/_kubectl-ocm"
bin/kubectl-ocm completion fish >"$dir/completions/kubectl-ocm.fish"
bin/kubectl-ocm completion powershell >"$dir/completions/kubectl-ocm.ps1"
