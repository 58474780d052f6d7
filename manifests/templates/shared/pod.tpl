{{- /* spec of a Deployment, from a podView. */ -}}
{{- define "deployment" -}}
spec:
  replicas: {{ .Replicas }}
  selector:
    matchLabels:
      app: {{ json .App }}
  template:
    metadata:
      labels:
        app: {{ json .App }}
      annotations:
        target.workload.openshift.io/management: '{"effect": "PreferredDuringScheduling"}'
        {{- range $key, $value := .Annotations }}
        {{ json $key }}: {{ json $value }}
        {{- end }}
    spec:
      serviceAccountName: {{ json .ServiceAccount }}
      imagePullSecrets:
      - name: {{ json .PullSecret }}
      {{- with .NodeSelector }}
      nodeSelector: {{ json . }}
      {{- end }}
      {{- with .Tolerations }}
      tolerations: {{ json . }}
      {{- end }}
      {{- with .PriorityClassName }}
      priorityClassName: {{ json . }}
      {{- end }}
      {{- with .HostAliases }}
      hostAliases: {{ json . }}
      {{- end }}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 70
            podAffinityTerm:
              topologyKey: topology.kubernetes.io/zone
              labelSelector:
                matchLabels:
                  app: {{ json .App }}
          - weight: 30
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app: {{ json .App }}
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: {{ json .Container }}
        image: {{ json .Image }}
        imagePullPolicy: IfNotPresent
        args:
        {{- range .Args }}
        - {{ json . }}
        {{- end }}
        env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        ports:
        - name: health
          containerPort: 8000
          protocol: TCP
        - name: metrics
          containerPort: 8080
          protocol: TCP
        {{- with .WebhookPort }}
        - name: webhook
          containerPort: {{ . }}
          protocol: TCP
        {{- end }}
        {{- range .Ports }}
        - name: {{ json .Name }}
          containerPort: {{ .Port }}
          protocol: TCP
        {{- end }}
        livenessProbe:
          httpGet:
            path: /healthz
            port: 8000
            scheme: HTTP
          initialDelaySeconds: 2
          periodSeconds: 10
        readinessProbe:
          httpGet:
            path: /readyz
            port: 8000
            scheme: HTTP
          periodSeconds: 2
        resources: {{ json .Resources }}
        # The status of the Pod has the last lines of a log that ends with an error.
        terminationMessagePolicy: FallbackToLogsOnError
        securityContext:
          allowPrivilegeEscalation: false
          privileged: false
          readOnlyRootFilesystem: true
          runAsNonRoot: true
          capabilities:
            drop:
            - ALL
        volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if .TLSSecret }}
        - name: serving-cert
          mountPath: /etc/serving-cert
          readOnly: true
        {{- end }}
        {{- if .Agent }}
        - name: bootstrap-secret
          mountPath: /spoke/bootstrap
          readOnly: true
        - name: hub-kubeconfig
          mountPath: /spoke/hub-kubeconfig
        {{- end }}
        {{- if .WorkAgent }}
        - name: hub-kubeconfig
          mountPath: /spoke/hub-kubeconfig
          readOnly: true
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {}
      {{- with .TLSSecret }}
      - name: serving-cert
        secret:
          secretName: {{ json . }}
      {{- end }}
      {{- if .Agent }}
      - name: bootstrap-secret
        secret:
          secretName: bootstrap-hub-kubeconfig
          # Without it the agent starts and says in a condition what is missing.
          optional: true
      - name: hub-kubeconfig
        emptyDir:
          medium: Memory
      {{- end }}
      {{- if .WorkAgent }}
      - name: hub-kubeconfig
        secret:
          secretName: hub-kubeconfig-secret
      {{- end }}
{{- end -}}
