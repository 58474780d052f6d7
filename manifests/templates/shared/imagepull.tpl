{{- /* What the image pull secret controller may do where it works. RBAC cannot
       limit the Secrets to its own: it reads those with its label only. */ -}}
{{- define "imagepull-rules" -}}
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.OnlyUsed }}
# Workloads say which ServiceAccounts are used.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [daemonsets, deployments, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list, watch]
{{- end }}
{{- end -}}

{{- /* roleRef and subjects of a binding, from its kind of role and its name. */ -}}
{{- define "imagepull-binding" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .Kind }}
  name: {{ json .Name }}
subjects:
- kind: ServiceAccount
  namespace: {{ json .Names.Namespace }}
  name: {{ json .Names.ServiceAccount }}
{{- end -}}
