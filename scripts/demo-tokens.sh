#!/usr/bin/env bash
# Workloads of two clusters of this machine become ServiceAccounts of the hub,
# though both clusters have one and the same issuer. Running it again repairs
# what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/bin:$PATH

. scripts/show.sh

show kubectl ocm local up --managed 2
KUBECONFIG=$(kubectl ocm local kubeconfig --path)
export KUBECONFIG

quietly kubectl ocm init --context hub --wait --feature token-authorizer
for cluster in cluster1 cluster2; do
	quietly kubectl ocm join --hub-context hub --context $cluster --cluster-name $cluster --publish-issuer --wait
done
for cluster in cluster1 cluster2; do
	kubectl --context hub wait managedcluster/$cluster --for=condition=IssuerTrusted --timeout=120s >/dev/null
done
show kubectl ocm issuer list --context hub

# exists makes an object unless it is there.
exists() { kubectl "$@" --dry-run=client -o yaml | kubectl "$1" "$2" apply -f - >/dev/null; }

audience=https://hub.example.com
for cluster in cluster1 cluster2; do
	exists --context $cluster create namespace app
	exists --context $cluster -n app create serviceaccount web
	exists --context hub create namespace $cluster-apps
	exists --context hub -n $cluster-apps create serviceaccount app.web
	show kubectl ocm exchange allow --context hub $cluster app/web --to $cluster-apps/app.web --audience $audience
done
say "kubectl ocm exchange rbac --context hub | kubectl --context hub apply -f -"
kubectl ocm exchange rbac --context hub | kubectl --context hub apply -f -

for cluster in cluster1 cluster2; do
	show kubectl ocm exchange test --hub-context hub --context $cluster --as app/web
done
say "kubectl --context cluster1 -n app create token web --audience $audience | kubectl ocm exchange explain --context hub -"
kubectl --context cluster1 -n app create token web --audience $audience |
	kubectl ocm exchange explain --context hub -
show kubectl ocm check tokens --context hub

cat <<END

The clusters keep running. Next steps:

  export PATH=$PWD/bin:\$PATH
  export KUBECONFIG=$KUBECONFIG
  kubectl ocm get clusters --context hub
  kubectl ocm issuer list --context hub -o wide

Take everything down again with:

  kubectl ocm local down
END
