#!/usr/bin/env bash
# Builds a program of others that only tests run into bin/, unless it is there already,
# built from the same sources by the same Go: build-test-program.sh NAME. Tests call this
# when they need one.
#
# The first build of aws-iam-authenticator takes minutes: it compiles one package at a
# time, because a client of EC2 that it brings along alone takes 2.7 GB of memory in the
# compiler. It has its full share of the processors: tests wait for it.
set -euo pipefail

name=${1:?usage: build-test-program.sh NAME}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$top/bin/$name
stamp=$top/bin/.$name.stamp
flags=() ldflags="-s -w -buildid="

case $name in
aws-iam-authenticator)
	src=$top/e2e/awsiamauthenticator
	module=sigs.k8s.io/aws-iam-authenticator
	package=$module/cmd/aws-iam-authenticator
	flags=(-p 1)
	;;
msa) # managed-serviceaccount is upstream's, unmodified.
	src=$top/e2e/managedserviceaccount
	module=open-cluster-management.io/managed-serviceaccount
	package=$module/cmd
	;;
registry) # An image registry and its client.
	src=$top/e2e/registry
	package=.
	;;
*)
	echo "There is no program $name that only tests need." >&2
	exit 2
	;;
esac

mkdir -p "$top/bin"
# Tests of several packages may want it at the same time.
exec 9>"$top/bin/.$name.lock"
flock 9

cd "$src"
want=$(
	{
		go version
		find . -type f -print0 | sort -z | xargs -0 sha256sum
		sha256sum "$top/scripts/build-test-program.sh" | cut -d' ' -f1
	} | sha256sum | cut -d' ' -f1
)
if [ -x "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
	exit 0
fi

echo "Building $name. This takes minutes when nothing is cached." >&2
start=$SECONDS
if [ "$name" = aws-iam-authenticator ]; then
	ldflags+=" -X $module/pkg.Version=$(go list -m -f '{{.Version}}' "$module")"
fi
CGO_ENABLED=0 go build "${flags[@]}" -tags grpcnotrace -trimpath -ldflags "$ldflags" -o "$out" "$package"
if [ "$name" = msa ]; then
	files=$(go list -m -f '{{.Dir}}' "$module")
	install -d "$top/bin/msa-deploy"
	for file in charts/managed-serviceaccount/crds/*.yaml deploy/bases/hub-clusterrole.yaml \
		deploy/bases/clustermanagementaddon.yaml deploy/bases/addon-manager-clusterrolebinding.yaml \
		charts/managed-serviceaccount/templates/addontemplate.yaml; do
		# Unquoted: the first is a pattern.
		(cd "$files" && install -m 0644 $file "$top/bin/msa-deploy")
	done
fi
echo "$want" >"$stamp"
echo "Built bin/$name in $((SECONDS - start))s." >&2
