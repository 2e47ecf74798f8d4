{{/* Names, labels and what several templates ask of the values. */}}

{{- define "muster.name" -}}
{{- default .Chart.Name .Values.nameOverride | replace "." "-" | trunc 30 | trimSuffix "-" -}}
{{- end -}}

{{/*
30 characters at most: with a component and a pool's name behind, 63 are the limit. A longer name ends in a
hash of it, so that two which begin alike stay apart.
*/}}
{{- define "muster.fullname" -}}
{{- $name := include "muster.name" . -}}
{{- $full := default (ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name)) .Values.fullnameOverride | replace "." "-" -}}
{{- if gt (len $full) 30 -}}
{{ $full | trunc 25 | trimSuffix "-" }}-{{ sha256sum $full | trunc 4 }}
{{- else -}}
{{ $full | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "component" "initiator" ["pool" NAME]) */}}
{{- define "muster.componentName" -}}
{{- include "muster.fullname" .root }}-{{ .component }}{{ with .pool }}-{{ . }}{{ end -}}
{{- end -}}

{{- define "muster.selectorLabels" -}}
app.kubernetes.io/name: {{ include "muster.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .pool }}
muster.io/pool: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "muster.labels" -}}
{{ include "muster.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: muster
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The metadata of a Deployment or StatefulSet.
(dict "root" $ "component" NAME ["pool" NAME] "conf" VALUES ["annotations" THOSE OF THE CHART])
*/}}
{{- define "muster.workloadMetadata" -}}
name: {{ include "muster.componentName" . }}
labels:
  {{- include "muster.labels" . | nindent 2 }}
  {{- with .conf.workloadLabels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with merge (dict) (default dict .annotations) (default dict .conf.workloadAnnotations) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The DNS name of a service of the release: (dict "root" $ "service" NAME) */}}
{{- define "muster.host" -}}
{{ .service }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end -}}

{{/* (dict "root" $ "image" COMPONENT'S IMAGE): what it leaves empty, the chart's image says. */}}
{{- define "muster.image" -}}
{{- $base := .root.Values.image -}}
{{- $own := default dict .image -}}
{{- $repository := default $base.repository $own.repository -}}
{{- if or $own.digest (and $base.digest (not $own.repository) (not $own.tag)) -}}
{{ $repository }}@{{ default $base.digest $own.digest }}
{{- else -}}
{{ $repository }}:{{ default (default .root.Chart.AppVersion $base.tag) $own.tag }}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "component" NAME "conf" VALUES) */}}
{{- define "muster.serviceAccountName" -}}
{{- if .conf.serviceAccount.create -}}
{{ default (include "muster.componentName" .) .conf.serviceAccount.name }}
{{- else -}}
{{ default "default" .conf.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* A pool's values over those that all pools have, as JSON: (dict "root" $ "pool" NAME) */}}
{{- define "muster.poolConf" -}}
{{- $own := deepCopy (default dict (get .root.Values.pools .pool)) -}}
{{- /* Of replicas null is as good as nothing; merged, it would be a number of its own. */ -}}
{{- if kindIs "invalid" (get $own "replicas") }}{{ $own = omit $own "replicas" }}{{ end -}}
{{- mergeOverwrite (deepCopy .root.Values.processor) $own | toJson -}}
{{- end -}}

{{/* Whether the agent, the HPA or KEDA sizes a pool: (dict "root" $ "conf" POOL) → "yes" or nothing */}}
{{- define "muster.isScaled" -}}
{{- if and (ne .root.Values.scaler.mode "none") .conf.scale.enabled -}}yes{{- end -}}
{{- end -}}

{{/*
"leave" where the Deployment of a scaled pool has to leave the release, and stay: a step by which a scaler gets
it with its replicas. Refuses what would end its pods: Helm deletes what the last release had and this one has
not. Of `replicas`, Kubernetes then sets the default, one; of a Deployment, nothing is left unless its
annotation keeps it. (dict "root" $ "pool" NAME "name" DEPLOYMENT "live" it, or an empty dict)
*/}}
{{- define "muster.handOver" -}}
{{- $scaler := .root.Values.scaler -}}
{{- if eq (dig "metadata" "annotations" "muster.io/replicas" "" .live) "chart" -}}
{{- $replicas := int .live.spec.replicas -}}
{{- if $scaler.takeOver -}}
{{- if ne (dig "metadata" "annotations" "helm.sh/resource-policy" "" .live) "keep" -}}
{{- fail (printf "pools.%s: with scaler.takeOver, this upgrade would delete Deployment %s with its %d pods: first run kubectl -n %s annotate deployment/%s helm.sh/resource-policy=keep" .pool .name $replicas .root.Release.Namespace .name) -}}
{{- end -}}
leave
{{- else if and (gt $replicas 1) (not $scaler.resetReplicas) -}}
{{- fail (printf "pools.%s: this upgrade would end %d of the %d pods of Deployment %s, since the chart has set its replicas and now leaves them to scaler.mode %s: take it over in four steps (docs/operations/kubernetes.md, \"From fixed replicas to a scaler\"), or set scaler.resetReplicas to begin with one" .pool (sub $replicas 1) $replicas .name $scaler.mode) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether an autoscaler asks the agent for the number of replicas → "yes" or nothing */}}
{{- define "muster.kedaAsksAgent" -}}
{{- if and (eq .Values.scaler.mode "keda") (not .Values.scaler.keda.prometheus) -}}yes{{- end -}}
{{- end -}}
{{- define "muster.hpaAsksAgent" -}}
{{- $hpa := .Values.scaler.hpa -}}
{{- if and (eq .Values.scaler.mode "hpa") (not $hpa.metrics) (kindIs "invalid" $hpa.targetCPUUtilization) -}}yes{{- end -}}
{{- end -}}

{{/* The labels that Prometheus gives the series of this release, if the chart says who scrapes → JSON */}}
{{- define "muster.seriesOfRelease" -}}
{{- $metrics := .Values.metrics -}}
{{- if or $metrics.serviceMonitor.enabled $metrics.podMonitor.enabled -}}
{{- dict "app_kubernetes_io_instance" .Release.Name | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* Whether there is a scaling agent → "yes" or nothing */}}
{{- define "muster.hasAgent" -}}
{{- if or (eq .Values.scaler.mode "agent") (include "muster.kedaAsksAgent" .) (include "muster.hpaAsksAgent" .) -}}yes{{- end -}}
{{- end -}}

{{/* An HPA that does what it is told: the agent has weighed already what a start and an idle replica
cost. (dict "max" N) */}}
{{- define "muster.directBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies: [{type: Pods, value: {{ max 1 (int .max) }}, periodSeconds: 15}]
scaleDown:
  stabilizationWindowSeconds: 0
  policies: [{type: Percent, value: 100, periodSeconds: 15}]
{{- end -}}

{{/* The queues that size a pool, as JSON; those of its jobs, unless it names some. */}}
{{- define "muster.poolQueues" -}}
{{- $queues := .conf.scale.queues -}}
{{- if not $queues -}}
{{- $queues = list -}}
{{- range .conf.jobs }}{{ $queues = append $queues (printf "%s-in" (splitList "=" . | first)) }}{{ end -}}
{{- end -}}
{{- if not $queues -}}
{{- fail (printf "pools.%s: scaler.mode %s sizes a pool by its queues, so it needs jobs or scale.queues (or scale.enabled: false)" .pool .root.Values.scaler.mode) -}}
{{- end -}}
{{- $queues | toJson -}}
{{- end -}}

{{/* The first job that a pool names. */}}
{{- define "muster.firstJob" -}}
{{- $root := . -}}
{{- $jobs := list -}}
{{- range $pool, $_ := .Values.pools }}{{ $jobs = concat $jobs (default list (include "muster.poolConf" (dict "root" $root "pool" $pool) | fromJson).jobs) }}{{ end -}}
{{ first $jobs | splitList "=" | first }}
{{- end -}}

{{/* Whether some pool works for the job of `helm test`. */}}
{{- define "muster.testHasPool" -}}
{{- $root := . -}}
{{- range $pool, $_ := .Values.pools -}}
{{- $conf := include "muster.poolConf" (dict "root" $root "pool" $pool) | fromJson -}}
{{- if not $conf.jobs -}}yes{{- end -}}
{{- range $conf.jobs }}{{ if eq (splitList "=" . | first) $root.Values.tests.job }}yes{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "muster.testP95Seconds" -}}
{{- if kindIs "invalid" .Values.tests.p95Seconds -}}
{{ max 1 (div (mul (int64 .Values.tests.slaSeconds) 3) 4) }}
{{- else -}}
{{ int64 .Values.tests.p95Seconds }}
{{- end -}}
{{- end -}}

{{/* The pools of the job of `helm test` that the agent's number takes to zero, with blanks between. */}}
{{- define "muster.testZeroPools" -}}
{{- $root := . -}}
{{- $found := list -}}
{{- $acts := or (and (eq .Values.scaler.mode "agent") .Values.scaler.agent.act) (include "muster.kedaAsksAgent" .) -}}
{{- if and $acts (gt (int .Values.tests.zeroSeconds) 0) -}}
{{- range $pool, $_ := .Values.pools -}}
{{- $conf := include "muster.poolConf" (dict "root" $root "pool" $pool) | fromJson -}}
{{- if and $conf.scale.enabled (eq (int $conf.scale.min) 0) -}}
{{- $queues := include "muster.poolQueues" (dict "root" $root "pool" $pool "conf" $conf) | fromJsonArray -}}
{{- if has (printf "%s-in" $root.Values.tests.job) $queues }}{{ $found = append $found $pool }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join " " $found -}}
{{- end -}}

{{- define "muster.natsSecret" -}}
{{ default (printf "%s-nats" (include "muster.fullname" .)) .Values.nats.existingSecret }}
{{- end -}}

{{/* Copies of all that is stored on NATS. */}}
{{- define "muster.streamReplicas" -}}
{{- if kindIs "invalid" .Values.nats.streamReplicas -}}
{{ ternary .Values.nats.replicas 1 .Values.nats.enabled }}
{{- else -}}
{{ .Values.nats.streamReplicas }}
{{- end -}}
{{- end -}}

{{/* HOST:PORT of each NATS server of the chart, as JSON. */}}
{{- define "muster.natsServers" -}}
{{- $service := include "muster.componentName" (dict "root" . "component" "nats") -}}
{{- $servers := list -}}
{{- range $i := until (int .Values.nats.replicas) -}}
{{- $servers = append $servers (printf "%s-%d.%s" $service $i (include "muster.host" (dict "root" $ "service" $service))) -}}
{{- end -}}
{{- $servers | toJson -}}
{{- end -}}

{{/* The secrets with tls.crt, tls.key and ca.crt. */}}
{{- define "muster.tlsSecret" -}}
{{ default (printf "%s-services-tls" (include "muster.fullname" .)) .Values.tls.existingSecret }}
{{- end -}}
{{- define "muster.natsTlsSecret" -}}
{{ default (printf "%s-nats-tls" (include "muster.fullname" .)) .Values.tls.existingNatsSecret }}
{{- end -}}
{{- define "muster.clientTlsSecret" -}}
{{ default (printf "%s-client-tls" (include "muster.fullname" .)) .Values.tls.existingClientSecret }}
{{- end -}}

{{/* How every container of the chart is held. */}}
{{- define "muster.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
privileged: false
readOnlyRootFilesystem: true
{{- end -}}
{{- define "muster.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}
