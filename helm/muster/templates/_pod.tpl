{{/*
The pod of a service.

  root       $
  component  initiator, controller, processor, scaling-agent or queue-gateway
  pool       the pool's name, of a processor
  conf       the component's values
  port, metricsPort
  morePorts  containerPorts of this component alone
  advertise  HOST without the port
  args, env  options and variables of this component alone
  data       the name of the volume with the data directory; none: an emptyDir
  volumes, mounts  those of this component alone
  automount  whether the pod gets the token of its account
*/}}
{{- define "muster.pod" -}}
{{- $text := include "muster.podText" . -}}
{{- include "muster.checkRepeats" (merge (dict "spec" (fromYaml $text).spec) .) -}}
{{ $text }}
{{- end -}}

{{- define "muster.podText" -}}
{{- $values := .root.Values -}}
{{- $program := printf "muster-%s" .component -}}
metadata:
  labels:
    {{- include "muster.selectorLabels" . | nindent 4 }}
    {{- with .conf.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .conf.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "muster.serviceAccountName" . | quote }}
  automountServiceAccountToken: {{ default false .automount }}
  # A service called muster would set MUSTER_PORT and the like.
  enableServiceLinks: false
  # The grace, 5 s in which the process gives up by itself, and some more.
  terminationGracePeriodSeconds: {{ add .conf.drainGraceSeconds 15 }}
  securityContext: {{- include "muster.podSecurity" . | nindent 4 }}
  {{- include "muster.scheduling" . | nindent 2 }}
  containers:
  - name: {{ .component }}
    image: {{ include "muster.image" (dict "root" .root "image" .conf.image) | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    {{- if .command }}
    command: {{- toYaml .command | nindent 4 }}
    {{- else }}
    command: [{{ $program }}]
    {{- end }}
    args:
    - --listen={{ $values.listenAddress }}:{{ .port }}
    {{- with .advertise }}
    - --advertise={{ . }}:{{ $.port }}
    {{- end }}
    {{- if not $values.tls.enabled }}
    - --allow-plaintext
    {{- end }}
    {{- if $values.policy.enabled }}
    - --policy=/etc/muster/policy/policy.yaml
    {{- end }}
    - --bucket={{ $values.mesh.bucket }}
    - --replicas={{ include "muster.streamReplicas" .root }}
    {{- /* A gateway's accounts are its clients', and a queue says how long its leases last. */}}
    {{- if not (include "muster.isGateway" .) }}
    - --account={{ $values.mesh.account }}
    - --lease={{ $values.mesh.lease }}
    {{- end }}
    - --ack-survives={{ ternary "power" "process" $values.nats.syncAlways }}
    - --data-dir=/var/lib/muster
    - --drain-grace={{ .conf.drainGraceSeconds }}s
    - --log-level={{ $values.mesh.logLevel }}
    - --log-format={{ $values.mesh.logFormat }}
    - --health={{ $values.listenAddress }}:{{ include "muster.healthPort" . }}
    {{- if $values.metrics.enabled }}
    - --metrics={{ $values.listenAddress }}:{{ .metricsPort }}
    - --allow-plaintext-metrics
    {{- end }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
    {{- range .conf.extraArgs }}
    - {{ . | quote }}
    {{- end }}
    {{- with .conf.workingDir }}
    workingDir: {{ . }}
    {{- end }}
    env:
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    {{- include "muster.natsEnv" .root | nindent 4 }}
    {{- if eq .component "processor" }}
    - {name: MUSTER_INSTANCE, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    {{- end }}
    {{- if $values.tls.enabled }}
    {{- include "muster.tlsEnv" .root | nindent 4 }}
    {{- end }}
    {{- with $values.otel.endpoint }}
    - {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
    {{- end }}
    {{- if not $values.metrics.enabled }}
    - {name: MUSTER_METRICS, value: ""}
    {{- end }}
    {{- with .env }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- with .conf.extraEnv }}{{ toYaml . | nindent 4 }}{{ end }}
    ports:
    - {name: {{ ternary "http" "grpc" (eq (include "muster.isGateway" .) "yes") }}, containerPort: {{ .port }}}
    {{- with .morePorts }}{{ toYaml . | nindent 4 }}{{ end }}
    - {name: health, containerPort: {{ include "muster.healthPort" . }}}
    {{- if $values.metrics.enabled }}
    - {name: metrics, containerPort: {{ .metricsPort }}}
    {{- end }}
    {{- include "muster.probes" . | nindent 4 }}
    {{- if include "muster.isGateway" . }}
    lifecycle:
      # Nodes send connections for some more moments to a pod that goes; its clients are not all patient.
      preStop: {exec: {command: [sleep, "5"]}}
    {{- end }}
    resources: {{- toYaml .conf.resources | nindent 6 }}
    securityContext: {{- include "muster.containerSecurity" . | nindent 6 }}
    volumeMounts:
    - {name: {{ default "data" .data }}, mountPath: /var/lib/muster}
    - {name: tmp, mountPath: /tmp}
    {{- if $values.tls.enabled }}
    - {name: tls, mountPath: /etc/muster/tls, readOnly: true}
    {{- end }}
    {{- if $values.policy.enabled }}
    - {name: policy, mountPath: /etc/muster/policy, readOnly: true}
    {{- end }}
    {{- if or $values.nats.credentialsKey $values.nats.caKey }}
    - {name: nats, mountPath: /etc/muster/nats, readOnly: true}
    {{- end }}
    {{- with .mounts }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- with .conf.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- range .conf.extraContainers }}
  - {{- toYaml . | nindent 4 }}
    {{- if not (hasKey . "securityContext") }}
    securityContext: {{- include "muster.containerSecurity" $ | nindent 6 }}
    {{- end }}
  {{- end }}
  volumes:
  - {name: tmp, emptyDir: {}}
  {{- if not .data }}
  - {name: data, emptyDir: {}}
  {{- end }}
  {{- if $values.tls.enabled }}
  - {name: tls, secret: {secretName: {{ include "muster.tlsSecret" .root | quote }}, defaultMode: 0440}}
  {{- end }}
  {{- if $values.policy.enabled }}
  - {name: policy, configMap: {name: {{ default (printf "%s-policy" (include "muster.fullname" .root)) $values.policy.existingConfigMap | quote }}}}
  {{- end }}
  {{- if or $values.nats.credentialsKey $values.nats.caKey }}
  - {name: nats, secret: {secretName: {{ include "muster.natsSecret" .root | quote }}, defaultMode: 0440}}
  {{- end }}
  {{- with .volumes }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- with .conf.extraVolumes }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{/* Where pods go: (dict "root" $ "component" … "conf" VALUES) */}}
{{- define "muster.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .conf.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .conf.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .conf.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .conf.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .conf.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range .conf.topologySpreadConstraints }}
- {{ toYaml . | nindent 2 | trim }}
  {{- if not .labelSelector }}
  labelSelector:
    matchLabels: {{- include "muster.selectorLabels" $ | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The password is in the URL, so the URL comes from a secret. */}}
{{- define "muster.natsEnv" -}}
{{- if or .Values.nats.enabled (and .Values.nats.existingSecret (not .Values.nats.url)) }}
- {name: MUSTER_NATS, valueFrom: {secretKeyRef: {name: {{ include "muster.natsSecret" . | quote }}, key: url}}}
{{- else }}
- {name: MUSTER_NATS, value: {{ .Values.nats.url | quote }}}
{{- end }}
{{- with .Values.nats.credentialsKey }}
- {name: MUSTER_NATS_CREDENTIALS, value: /etc/muster/nats/{{ . }}}
{{- end }}
{{- if .Values.nats.caKey }}
- {name: MUSTER_NATS_CA, value: /etc/muster/nats/{{ .Values.nats.caKey }}}
{{- else if and .Values.nats.enabled .Values.tls.enabled }}
- {name: MUSTER_NATS_CA, value: /etc/muster/tls/ca.crt}
{{- end }}
{{- if and .Values.nats.enabled .Values.tls.enabled }}
- {name: MUSTER_NATS_CERT, value: /etc/muster/tls/tls.crt}
- {name: MUSTER_NATS_KEY, value: /etc/muster/tls/tls.key}
{{- end }}
{{- end -}}

{{/* In the environment, so that `muster` in the pod has them, too. */}}
{{- define "muster.tlsEnv" -}}
- {name: MUSTER_TLS_CERT, value: /etc/muster/tls/tls.crt}
- {name: MUSTER_TLS_KEY, value: /etc/muster/tls/tls.key}
- {name: MUSTER_TLS_ROOTS, value: /etc/muster/tls/ca.crt}
{{- end -}}

{{/*
Liveness asks whether the process takes connections: NATS has no part in it. Readiness is the health
service's answer, which is SERVING while the service is connected. The kubelet's gRPC probe speaks
plaintext only, so health has a port of its own, which answers nothing else. A queue gateway answers the
same two questions over HTTP.
*/}}
{{- define "muster.healthPort" -}}{{ add .port 80 }}{{- end -}}
{{- define "muster.isGateway" -}}{{ if eq .component "queue-gateway" }}yes{{ end }}{{- end -}}
{{- define "muster.probes" -}}
livenessProbe:
  {{- if include "muster.isGateway" . }}
  httpGet: {path: /healthz, port: health}
  {{- else }}
  tcpSocket: {port: grpc}
  {{- end }}
  {{- toYaml .conf.livenessProbe | nindent 2 }}
readinessProbe:
  {{- if include "muster.isGateway" . }}
  httpGet: {path: /readyz, port: health}
  {{- else }}
  grpc: {port: {{ include "muster.healthPort" . }}}
  {{- end }}
  {{- toYaml .conf.readinessProbe | nindent 2 }}
{{- end -}}

{{/* A ServiceAccount, unless the component uses another: (dict "root" $ "component" … "conf" VALUES) */}}
{{- define "muster.serviceAccount" -}}
{{- if .conf.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "muster.serviceAccountName" . | quote }}
  labels: {{- include "muster.labels" . | nindent 4 }}
  {{- with .conf.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{/* The headless service that gives each pod a name, and Prometheus its targets. */}}
{{- define "muster.headlessService" -}}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "muster.componentName" . }}
  labels:
    {{- include "muster.labels" . | nindent 4 }}
    muster.io/headless: "true"
spec:
  clusterIP: None
  # Peers find each other before they are ready.
  publishNotReadyAddresses: true
  selector: {{- include "muster.selectorLabels" . | nindent 4 }}
  ports:
  - {name: grpc, port: {{ .port }}, targetPort: grpc}
  {{- if .root.Values.metrics.enabled }}
  - {name: metrics, port: {{ .metricsPort }}, targetPort: metrics}
  {{- end }}
{{- end -}}

{{/* (dict "root" $ "component" … "conf" VALUES) */}}
{{- define "muster.pdb" -}}
{{- if .conf.pdb.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "muster.componentName" . }}
  labels: {{- include "muster.labels" . | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" .conf.pdb.minAvailable) }}
  minAvailable: {{ .conf.pdb.minAvailable }}
  {{- else }}
  maxUnavailable: {{ ternary 1 .conf.pdb.maxUnavailable (kindIs "invalid" .conf.pdb.maxUnavailable) }}
  {{- end }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "muster.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* The volume of a StatefulSet: (dict "conf" VALUES "root" $ "component" …) */}}
{{- define "muster.claims" -}}
{{- if .conf.persistence.enabled }}
persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
volumeClaimTemplates:
- metadata:
    name: volume
    labels: {{- include "muster.selectorLabels" . | nindent 6 }}
    {{- with .conf.persistence.annotations }}
    annotations: {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .conf.persistence.storageClass }}
    storageClassName: {{ ternary "" . (eq . "-") | quote }}
    {{- end }}
    resources: {requests: {storage: {{ .conf.persistence.size }}}}
{{- end }}
{{- end -}}
