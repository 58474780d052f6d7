#!/usr/bin/env bash
# Builds bin/localkube (and bin/kubectl, a link to it), or, with a minor release such
# as 1.30 as its argument, bin/localkube-1.30 from the versions in
# cmd/localkube/versions/1.30.mod; unless it is there already, built from the same
# sources by the same Go. The first build compiles Kubernetes: about four minutes on
# two cores. With a platform such as linux_arm64 as its argument, it builds
# bin/linux_arm64/localkube, which go build itself finds unchanged or not.
set -euo pipefail

release=${1:-} platform=
case $release in *_*) platform=$release release= ;; esac
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
src=$top/cmd/localkube
name=localkube${release:+-$release}
out=$top/bin/${platform:+$platform/}$name
stamp=$top/bin/.$name.stamp
modules=${release:+versions/$release.mod}
modules=${modules:-go.mod}

cd "$src"
version=$(go list -modfile="$modules" -m -f '{{.Version}}' k8s.io/kubernetes)
want=$(
	{
		go version
		sha256sum "$modules" "${modules%.mod}.sum" ./*.go
		sha256sum "$top/scripts/build-localkube.sh" | cut -d' ' -f1
	} | sha256sum | cut -d' ' -f1
)
if [ -z "$platform" ] && [ -x "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
	exit 0
fi

minor=${version#v1.}
minor=${minor%%.*}
flags=(-s -w)
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=(
		-X "$package.gitVersion=$version"
		-X "$package.gitMajor=1"
		-X "$package.gitMinor=$minor"
		-X "$package.gitTreeState=clean"
	)
done

if [ -n "$platform" ]; then
	export GOOS=${platform%_*} GOARCH=${platform#*_}
fi
mkdir -p "$(dirname "$out")"
echo "Building $name (Kubernetes $version). This takes minutes when nothing is cached." >&2
start=$SECONDS
CGO_ENABLED=0 go build ${platform:+-buildvcs=auto} -modfile="$modules" -trimpath -ldflags "${flags[*]}" -o "$out.new" . &
build=$!
trap 'kill "$build" 2>/dev/null || true; rm -f "$out.new"' EXIT
while kill -0 "$build" 2>/dev/null; do
	sleep 1
	elapsed=$((SECONDS - start))
	if [ $((elapsed % 15)) -eq 0 ] && [ "$elapsed" -gt 0 ]; then
		echo "  ... still compiling after ${elapsed}s" >&2
	fi
done
wait "$build"
mv "$out.new" "$out"
if [ -z "$platform" ]; then
	[ -n "$release" ] || ln -sfn localkube "$top/bin/kubectl"
	echo "$want" >"$stamp"
fi
echo "Built ${out#"$top/"} in $((SECONDS - start))s." >&2
