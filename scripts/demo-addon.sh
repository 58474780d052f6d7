#!/usr/bin/env bash
# A sample add-on on two clusters of this machine: cluster1 gives its add-ons
# client certificates, cluster2 service account tokens. Running it again
# repairs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/bin:$PATH

. scripts/show.sh

image=kubectl-ocm/heartbeat-addon
show kubectl ocm local up --managed 2 --image "$image=$PWD/bin/heartbeat-addon"
KUBECONFIG=$(kubectl ocm local kubeconfig --path)
export KUBECONFIG

quietly kubectl ocm init --context hub --wait
quietly kubectl ocm join --hub-context hub --context cluster1 --cluster-name cluster1 --wait
quietly kubectl ocm join --hub-context hub --context cluster2 --cluster-name cluster2 --wait \
	--addon-kubeclient-registration-auth=token --addon-token-expiration-seconds=3600

show kubectl --context hub apply -f examples/heartbeat/deploy/hub.yaml
for cluster in cluster1 cluster2; do
	sed "s/cluster1/$cluster/" examples/heartbeat/deploy/managedclusteraddon.yaml |
		kubectl --context hub apply -f -
done

# What a work agent would do: apply what the add-on's manager wants.
for cluster in cluster1 cluster2; do
	work=manifestwork/addon-heartbeat-deploy-0
	kubectl --context hub -n "$cluster" wait "$work" --for=create --timeout=120s >/dev/null
	kubectl --context hub -n "$cluster" get "$work" \
		-o jsonpath='{"{"}"apiVersion":"v1","kind":"List","items":{.spec.workload.manifests}{"}"}' |
		kubectl --context "$cluster" apply -f - >/dev/null
done
for cluster in cluster1 cluster2; do
	kubectl --context "$cluster" -n open-cluster-management-agent-addon \
		rollout status deployment/heartbeat-agent --timeout=120s
	kubectl --context hub -n "$cluster" wait configmap/heartbeat --for=create --timeout=120s >/dev/null
	kubectl --context hub -n "$cluster" wait managedclusteraddon/heartbeat --for=condition=Available --timeout=180s
done

show kubectl --context hub get configmaps -A --field-selector metadata.name=heartbeat \
	-o 'custom-columns=CLUSTER:.metadata.namespace,SEQUENCE:.data.sequence,CREDENTIAL:.data.credential,USER:.data.user'
show kubectl ocm get addons --context hub
show kubectl ocm addon-auth status --context hub

cat <<EOF

The clusters keep running. Next steps:

  export PATH=$PWD/bin:\$PATH
  export KUBECONFIG=$KUBECONFIG
  kubectl ocm addon-auth rotate --context hub --addon heartbeat --wait
  kubectl ocm addon-auth set --context cluster1 --driver token --wait

Take everything down again with:

  kubectl ocm local down
EOF
