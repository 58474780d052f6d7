#!/usr/bin/env bash
# A hub and two managed clusters on this machine, joined by the commands that a
# user would type, and a workload on both. Running it again repairs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/bin:$PATH

. scripts/show.sh

show kubectl ocm local up --managed 2 --image "example.com/sleep=$(command -v sleep)"
KUBECONFIG=$(kubectl ocm local kubeconfig --path)
export KUBECONFIG

quietly kubectl ocm init --context hub --wait

# The token goes from command to command without a terminal or a log seeing it.
join=$(kubectl ocm get token --context hub -o json 2>/dev/null)
token=$(sed -n 's/.*"hub-token": "\([^"]*\)".*/\1/p' <<<"$join")
server=$(sed -n 's/.*"hub-apiserver": "\([^"]*\)".*/\1/p' <<<"$join")
hash=$(grep -o 'sha256:[0-9a-f]*' <<<"$join" | head -n 1)
for cluster in cluster1 cluster2; do
	join=(kubectl ocm join --context "$cluster" --cluster-name "$cluster"
		--hub-apiserver "$server" --hub-ca-hash "$hash" --hub-token-file -)
	say "${join[@]}"
	"${join[@]}" <<<"$token" >/dev/null
done

show kubectl ocm accept --context hub cluster1 cluster2 --wait
kubectl --context hub wait managedclusters --all --timeout 120s \
	--for=condition=ManagedClusterConditionAvailable >/dev/null
show kubectl ocm get clusters --context hub

show kubectl ocm create work hello --context hub --clusters cluster1,cluster2 \
	-f examples/hello --wait
show kubectl ocm get works --context hub
show kubectl --context cluster1 get deployment hello -n hello

cat <<EOF

The clusters keep running. Next steps:

  export PATH=$PWD/bin:\$PATH
  export KUBECONFIG=$KUBECONFIG
  kubectl ocm get clusters --context hub
  kubectl ocm check work hello --context hub --cluster cluster1
  kubectl --context hub get managedclusters
  kubectl --context cluster1 get pods -A
  kubectl ocm local status

Take everything down again with:

  kubectl ocm local down
EOF
