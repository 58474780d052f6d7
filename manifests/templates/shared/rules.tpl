{{- /* What the hub registration controller may do. It holds everything that it
       grants to clusters: it has no escalate, and bind for the two shared ClusterRoles only;
       the operator holds it too, for the same reason. */ -}}
{{- define "hub-registration-rules" -}}
# Clusters.
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [get, list, watch, update, patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/status]
  verbs: [update, patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/finalizers]
  verbs: [update]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets]
  verbs: [get, list, watch]
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/accept]
  verbs: [update]
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/clientcertificates]
  verbs: [renew]
# Certificate requests. Those that made an agent of a cluster that is gone its
# agent are deleted with the cluster.
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [create, get, list, watch, delete]
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests/approval]
  verbs: [update, patch]
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [kubernetes.io/kube-apiserver-client]
  verbs: [approve]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
# What an accepted cluster is given.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles, clusterrolebindings, roles, rolebindings]
  verbs: [get, list, watch, create, update, patch, delete]
# It holds what these two permit. Without bind the API server finds that out for every
# cluster, and goes through the ClusterRoleBindings of all clusters to do so.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: {{ json .Names.SharedClusterRoles }}
  verbs: [bind]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
# The issuers that clusters publish: agents write them, the hub evaluates them and
# deletes those of clusters that it does not accept.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ json .Names.Issuer }}]
  verbs: [get, list, watch, create, patch, delete]
# What is cleaned up after a cluster, and what its agents may do with it.
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons/status]
  verbs: [update, patch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [get, list, watch, update, patch, delete]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks/status]
  verbs: [update, patch]
# ManifestWorkReplicaSets are removed with their works whether or not their gate is on.
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworkreplicasets]
  verbs: [get, list, watch, patch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworkreplicasets/status]
  verbs: [patch]
{{- end -}}

{{- /* What the add-on manager may do. Kubernetes lets it make a Role only of
       rights that it holds itself, therefore it holds the one of requesting
       tokens; an admission policy keeps it from using it and from granting
       anything but that (hub-admission/3-addons.yaml). */ -}}
{{- define "hub-addon-manager-rules" -}}
# Add-ons, and what says where they are installed and how.
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons/status, clustermanagementaddons/status]
  verbs: [patch]
- apiGroups: [addon.open-cluster-management.io]
  resources: [clustermanagementaddons, addondeploymentconfigs, addontemplates]
  verbs: [get, list, watch]
# An owner that blocks its deletion may only be set by those who may do this.
- apiGroups: [addon.open-cluster-management.io]
  resources: [clustermanagementaddons/finalizers, managedclusteraddons/finalizers]
  verbs: [update]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters, placementdecisions, placements]
  verbs: [get, list, watch]
# The works of add-ons made from AddOnTemplates, and what became of those of others.
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [get, list, watch, create, patch, delete]
# Their certificates. To sign for a signer of a template, and to bind a role of one, is
# granted for that signer and that role.
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [get, list, watch]
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests/approval, certificatesigningrequests/status]
  verbs: [update]
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [kubernetes.io/kube-apiserver-client]
  verbs: [approve]
# The identities of add-ons that register with tokens.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create, subscribe]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
{{- end -}}

{{- /* What the token authorizer may do on the whole hub: learn which clusters
       there are and which keys they publish. It may mint no token anywhere: who
       wants that grants it, account by account, with what
       "kubectl ocm exchange rbac" prints. */ -}}
{{- define "hub-token-authorizer-rules" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ json .Names.Hub.TokenAuthorizer.Issuer }}]
  verbs: [list, watch]
# The rules, and what it makes of them.
- apiGroups: [tokenexchange.open-cluster-management.io]
  resources: [tokenexchangepolicies, tokenexchangedefaults]
  verbs: [get, list, watch]
- apiGroups: [tokenexchange.open-cluster-management.io]
  resources: [tokenexchangepolicies/status, tokenexchangedefaults/status]
  verbs: [patch]
{{- end -}}

{{- /* What the owner of a cluster may do in its namespace on the hub. Admission
       denies rules of other clusters to users without the verb escalate. */ -}}
{{- define "token-exchange-editor-rules" -}}
- apiGroups: [tokenexchange.open-cluster-management.io]
  resources: [tokenexchangepolicies]
  verbs: [get, list, watch, create, update, patch]
{{- end -}}

{{- /* What the registration agent may do anywhere on the managed cluster. */ -}}
{{- define "agent-cluster-rules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [clusterclaims]
  verbs: [get, list, watch]
- apiGroups: [about.k8s.io]
  resources: [clusterproperties]
  verbs: [get, list, watch]
# What identifies the cluster is the id that OpenShift gave it, else the UID of
# this namespace. A cluster without a name takes it as its name.
- apiGroups: [config.openshift.io]
  resources: [clusterversions]
  verbs: [get]
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end -}}

{{- /* What the registration agent needs to manage add-ons. */ -}}
{{- define "agent-addon-rules" -}}
# It looks whether the namespace of an add-on is there, and makes none.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch]
# It records events about new credentials.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{- /* What the registration agent needs to try its cluster's keys on a token of
       its own, which is the only token that it may request. */ -}}
{{- define "agent-issuer-rules" -}}
- apiGroups: [""]
  resources: [serviceaccounts/token]
  resourceNames: [{{ json (printf "%s-registration-sa" .Values.Name) }}]
  verbs: [create]
{{- end -}}

{{- /* What the registration agent may do in its own namespace. */ -}}
{{- define "agent-namespace-rules" -}}
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
{{- end -}}


{{- /* What the work agent does for itself: its records of what it applied, and
       reviews of what an executor may do. */ -}}
{{- define "work-agent-rules" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [appliedmanifestworks]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [work.open-cluster-management.io]
  resources: [appliedmanifestworks/status]
  verbs: [update, patch]
# An owner that blocks its deletion may only be set by those who may do this.
- apiGroups: [work.open-cluster-management.io]
  resources: [appliedmanifestworks/finalizers]
  verbs: [update]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- /* What the work agent needs to check an executor's RBAC objects for escalation.
       It makes the agent any ServiceAccount of the cluster, so only the
       permissions that include everything come with it. */ -}}
{{- define "work-impersonation-rules" -}}
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- end -}}

{{- /* What the work agent may do in its own namespace: elect a leader and report. */ -}}
{{- define "work-namespace-rules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
{{- end -}}

{{- /* What OCM's work agent may do by default, besides the ClusterRole admin.
       With escalate and bind it is everything. */ -}}
{{- define "work-execution-rules" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterrolebindings, rolebindings]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles, roles]
  verbs: [get, list, watch, create, update, patch, delete, escalate, bind]
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [oauth.openshift.io]
  resources: [oauthclients]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [get, list, watch, create, update, patch, delete]
{{- end -}}


{{- /* To write ManifestWorks without an executor where that is checked. */ -}}
{{- define "work-executor-rules" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  resourceNames: [{{ json .Names.DefaultExecutor }}]
  verbs: [execute-as]
{{- end -}}

{{- /* To make the ManifestWorks of ManifestWorkReplicaSets, which run as any executor:
       whether their writers may do that is asked when they write them
       (hub-admission/5-manifestworks.yaml). */ -}}
{{- define "hub-replicasets-rules" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [get, list, watch, create, patch, delete, execute-as]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements, placementdecisions]
  verbs: [get, list, watch]
{{- end -}}
