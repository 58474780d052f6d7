#!/usr/bin/env bash
# Builds bin/aws-iam-authenticator, unless it is there already, built from the
# same sources by the same Go. The first build takes about four minutes: it
# compiles one package at a time and yields to everything else, because a client
# of EC2 that it brings along alone takes 2.7 GB of memory in the compiler.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$top/bin/aws-iam-authenticator
stamp=$top/bin/.aws-iam-authenticator.stamp
module=sigs.k8s.io/aws-iam-authenticator

cd "$top/e2e/awsiamauthenticator"
want=$(
	{
		go version
		sha256sum go.mod go.sum
		sha256sum "$top/scripts/build-aws-iam-authenticator.sh" | cut -d' ' -f1
	} | sha256sum | cut -d' ' -f1
)
if [ -x "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
	exit 0
fi

version=$(go list -m -f '{{.Version}}' "$module")
mkdir -p "$top/bin"
echo "Building aws-iam-authenticator $version. This takes minutes when nothing is cached." >&2
start=$SECONDS
# Two builds at once must not write one file.
new=$out.new.$$
trap 'rm -f "$new"' EXIT
CGO_ENABLED=0 nice -n 19 go build -p 1 -trimpath -ldflags "-s -w -X $module/pkg.Version=$version" \
	-o "$new" "$module/cmd/aws-iam-authenticator"
mv "$new" "$out"
echo "$want" >"$stamp"
echo "Built bin/aws-iam-authenticator in $((SECONDS - start))s." >&2
