#!/usr/bin/env bash
# Builds a release twice, from two clones in two directories, and expects the same
# files. Then it installs the program from them: as a plugin with krew, and as a Debian
# package. Needs dpkg, lintian and ruby, which Debian and Ubuntu have by these names.
set -euo pipefail
cd "$(dirname "$0")/.."
# dpkg runs programs of these directories, which not every user's PATH has.
PATH=$PATH:/usr/sbin:/sbin

for tool in dpkg-deb lintian ruby; do
	if ! command -v "$tool" >/dev/null; then
		echo "Testing a release needs $tool; install dpkg, lintian and ruby." >&2
		exit 1
	fi
done

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

step() { printf '\n--- %s\n' "$*"; }

export IMAGE_REPOSITORY=registry.example.com/kubectl-ocm
# The clones have no uncommitted changes, which a release refuses.
step "building a release in two directories"
for clone in first second/elsewhere; do
	git clone --quiet --no-hardlinks . "$scratch/$clone"
	make --no-print-directory -C "$scratch/$clone" release
	(cd "$scratch/$clone" && sha256sum dist/*) >"$scratch/$(basename "$clone").sums"
done
diff "$scratch/first.sums" "$scratch/elsewhere.sums"
dist=$scratch/first/dist
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
version=$(basename "$dist"/kubectl-ocm_*_linux_amd64.tar.gz _linux_amd64.tar.gz)
version=${version#kubectl-ocm_}
commit=$(git rev-parse HEAD)

# says expects of a command that it names the release and its commit.
says() {
	local output
	output=$("$@")
	echo "$output"
	grep -qF "Client: $version" <<<"$output"
	grep -qF "Commit: $commit" <<<"$output"
}

step "the image: its name in the program and in the archive"
test "$("$scratch/first/bin/kubectl-ocm" images -o name)" = "$IMAGE_REPOSITORY:$version"
tar -xOf "$dist/kubectl-ocm_${version}_image.tar" index.json | grep -F "\"$IMAGE_REPOSITORY:$version\""

step "krew: validating the manifest"
(cd release && go build -o "$scratch/tools/" sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest)
"$scratch/tools/validate-krew-manifest" -skip-install -manifest "$dist/ocm.yaml"

step "krew: installing from each archive"
make --no-print-directory localkube
# The kubectl of this tree, without the program that is built next to it.
ln -s "$PWD/bin/kubectl" "$scratch/tools/kubectl"
export KREW_ROOT=$scratch/krew KREW_NO_UPGRADE_CHECK=1
for archive in "$dist"/kubectl-ocm_*.tar.gz "$dist"/kubectl-ocm_*.zip; do
	platform=$(basename "$archive")
	platform=${platform#"kubectl-ocm_${version}_"}
	platform=${platform%.tar.gz} platform=${platform%.zip}
	if [ "$platform" = linux_s390x ]; then # krew has no builds for it.
		continue
	fi
	KREW_ROOT=$scratch/krew-$platform KREW_OS=${platform%_*} KREW_ARCH=${platform#*_} \
		"$scratch/tools/krew" install --manifest="$dist/ocm.yaml" --archive="$archive" >/dev/null
	test -s "$scratch/krew-$platform/store/ocm/$version/LICENSE"
done
"$scratch/tools/krew" install --manifest="$dist/ocm.yaml" --archive="$dist/kubectl-ocm_${version}_linux_amd64.tar.gz"
says env PATH="$KREW_ROOT/bin:$scratch/tools" HOME="$scratch" kubectl ocm version --client

step "krew: completions"
lines=$(sed -n "/^printf '#!/,/^chmod/p" docs/guides/install.md)
mkdir -p "$scratch/home"
ln -s "$KREW_ROOT" "$scratch/home/.krew"
HOME=$scratch/home sh -euc "$lines"
PATH="$KREW_ROOT/bin:$scratch/tools:/usr/bin:/bin" kubectl __complete ocm join --cluster-na | grep -q -- --cluster-name

step "make install and uninstall"
prefix=$scratch/home/prefix
make --no-print-directory install CLUSTERADM=1 PREFIX="$prefix"
"$prefix/bin/clusteradm" version --client | grep -qF "Client: $version"
test -s "$prefix/share/man/man1/kubectl-ocm-join.1"
test -s "$prefix/share/bash-completion/completions/kubectl-ocm"
make --no-print-directory uninstall PREFIX="$prefix"
test -z "$(find "$prefix" -type f -o -type l)"

step "Homebrew: reading the formula"
ruby -c "$dist/kubectl-ocm.rb"

step "Debian: installing the packages"
package=$(echo "$dist"/kubectl-ocm_*_amd64.deb)
localkube=$(echo "$dist"/kubectl-ocm-localkube_*_amd64.deb)
lintian --fail-on error,warning "$dist"/*.deb
mkdir -p "$scratch/root/var/lib/dpkg"
touch "$scratch/root/var/lib/dpkg/status"
dpkg --root="$scratch/root" --force-not-root --force-script-chrootless --log="$scratch/dpkg.log" --install "$package" "$localkube"
says "$scratch/root/usr/bin/kubectl-ocm" version --client
PATH="$scratch/root/usr/bin:$scratch/tools:$PATH" kubectl __complete ocm join --cluster-na | grep -q -- --cluster-name
test -s "$scratch/root/usr/share/man/man1/kubectl-ocm-join.1.gz"
# No checkout and no Go: the package alone starts a hub, and installs it.
alone() { env -i PATH="$scratch/root/usr/bin:/usr/bin:/bin" HOME="$scratch/home" "$@"; }
# At the end the package is gone: a failure here would be that of the script.
trap 'alone kubectl-ocm local down >/dev/null 2>&1 || true; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
alone kubectl-ocm local up --managed 0
alone kubectl-ocm init --kubeconfig "$(alone kubectl-ocm local kubeconfig --path)" --context hub --wait >/dev/null
alone kubectl-ocm local down
dpkg --root="$scratch/root" --force-not-root --force-script-chrootless --log="$scratch/dpkg.log" --purge kubectl-ocm kubectl-ocm-localkube
test ! -e "$scratch/root/usr/bin/kubectl-ocm"

step "everything is as it should be"
