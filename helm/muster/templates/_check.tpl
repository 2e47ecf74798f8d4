{{/* What contradicts itself, beyond what the schema can say. */}}
{{- define "muster.check" -}}
{{- $values := .Values -}}
{{- $full := include "muster.fullname" . -}}
{{- if regexMatch "^[0-9]" $full -}}
{{- fail (printf "%s begins with a digit, and the name of a Service with a letter: set fullnameOverride" $full) -}}
{{- end -}}
{{- $accounts := dict -}}
{{- $parts := dict "initiator" $values.initiator "controller" $values.controller "processor" $values.processor -}}
{{- if $values.nats.enabled }}{{ $_ := set $parts "nats" $values.nats }}{{ end -}}
{{- if $values.queueGateway.enabled }}{{ $_ := set $parts "queue-gateway" $values.queueGateway }}{{ end -}}
{{- if include "muster.hasAgent" . }}{{ $_ := set $parts "scaling-agent" $values.scaler.agent }}{{ end -}}
{{- range $part, $conf := $parts -}}
{{- if $conf.serviceAccount.create -}}
{{- $name := include "muster.serviceAccountName" (dict "root" $ "component" $part "conf" $conf) -}}
{{- if hasKey $accounts $name -}}
{{- fail (printf "serviceAccount.name of %s and of %s is %s, and both would make it: set create to false for one" (get $accounts $name) $part $name) -}}
{{- end -}}
{{- $_ := set $accounts $name $part -}}
{{- end -}}
{{- end -}}
{{- if and (not $values.nats.enabled) (not $values.nats.url) (not $values.nats.existingSecret) -}}
{{- fail "nats.enabled is false: nats.url or nats.existingSecret must name a NATS server" -}}
{{- end -}}
{{- if and $values.nats.enabled $values.nats.url -}}
{{- fail "nats.url names a NATS server of your own: set nats.enabled to false, too" -}}
{{- end -}}
{{- if contains "@" (default "" $values.nats.url) -}}
{{- fail "nats.url has a password, which everyone who reads the values would see: put the URL into nats.existingSecret, key url" -}}
{{- end -}}
{{- range list "credentialsKey" "caKey" -}}
{{- if and (get $values.nats .) (not $values.nats.existingSecret) -}}
{{- fail (printf "nats.%s is %s, which is a key of nats.existingSecret: name that secret, too" . (get $values.nats .)) -}}
{{- end -}}
{{- end -}}
{{- if and $values.tls.enabled (not $values.tls.certManager.enabled) -}}
{{- if not $values.tls.existingSecret -}}
{{- fail "tls.enabled needs tls.existingSecret, or tls.certManager.enabled with an issuerRef" -}}
{{- end -}}
{{- if and $values.nats.enabled (not $values.tls.existingNatsSecret) -}}
{{- fail "tls.existingSecret is for the services: tls.existingNatsSecret must hold the NATS servers' certificate" -}}
{{- end -}}
{{- if and $values.tests.enabled (not $values.tls.existingClientSecret) -}}
{{- fail "tls.existingClientSecret must hold the certificate of the pod of helm test (or tests.enabled: false)" -}}
{{- end -}}
{{- if and (include "muster.kedaAsksAgent" .) (not $values.scaler.keda.authentication) (not $values.tls.existingClientSecret) -}}
{{- fail "tls.existingClientSecret must hold the certificate that KEDA shows the agent (or scaler.keda.authentication: a TriggerAuthentication of your own)" -}}
{{- end -}}
{{- end -}}
{{- if and $values.tls.certManager.enabled (not $values.tls.enabled) -}}
{{- fail "tls.certManager.enabled needs tls.enabled" -}}
{{- end -}}
{{- if and $values.tls.certManager.enabled (not $values.tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name must name an issuer" -}}
{{- end -}}
{{- if and $values.queueGateway.enabled (not $values.queueGateway.accounts.existingSecret) -}}
{{- fail "queueGateway.enabled needs queueGateway.accounts.existingSecret: everybody knows the key of the development account" -}}
{{- end -}}
{{- if and $values.nats.enabled (gt (int $values.nats.streamReplicas) (int $values.nats.replicas)) -}}
{{- fail (printf "nats.streamReplicas is %d, nats.replicas %d: each copy needs a server of its own" (int $values.nats.streamReplicas) (int $values.nats.replicas)) -}}
{{- end -}}
{{- /* What the streams in memory may have together, and once more the larger one: a server that is asked for it
again, by the next service, wants to have room for a second one. */ -}}
{{- if and $values.nats.enabled (lt (include "muster.bytes" $values.nats.memoryStore | float64) 150994944.0) -}}
{{- fail (printf "nats.memoryStore is %s: the services wait for a server that has 144MB for their streams in memory" $values.nats.memoryStore) -}}
{{- end -}}
{{- if and $values.nats.enabled $values.nats.persistence.enabled (ge (include "muster.bytes" $values.nats.fileStore | float64) (include "muster.bytes" $values.nats.persistence.size | float64)) -}}
{{- fail (printf "nats.fileStore is %s, nats.persistence.size %s: the volume has to be the larger one" $values.nats.fileStore $values.nats.persistence.size) -}}
{{- end -}}
{{- include "muster.checkPools" . -}}
{{- include "muster.checkTimes" . -}}
{{- if gt (int64 $values.tests.p95Seconds) (int64 $values.tests.slaSeconds) -}}
{{- fail (printf "tests.p95Seconds is %d, tests.slaSeconds %d: 95 %% of the items cannot take longer than all of them; lower p95Seconds" (int64 $values.tests.p95Seconds) (int64 $values.tests.slaSeconds)) -}}
{{- end -}}
{{- if and $values.policy.enabled (not $values.tls.enabled) -}}
{{- fail "policy.enabled needs tls.enabled: without certificates no caller can prove who it is" -}}
{{- end -}}
{{- if and (or $values.metrics.serviceMonitor.enabled $values.metrics.podMonitor.enabled $values.metrics.prometheusRule.enabled) (not $values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor, podMonitor and prometheusRule need metrics.enabled" -}}
{{- end -}}
{{- if and $values.metrics.serviceMonitor.enabled $values.metrics.podMonitor.enabled -}}
{{- fail "metrics.serviceMonitor and metrics.podMonitor: each pod would be scraped twice; enable one of them" -}}
{{- end -}}
{{- $own := include "muster.labels" (dict "root" $) | fromYaml | keys -}}
{{- range $where, $more := dict "metrics.serviceMonitor" $values.metrics.serviceMonitor "metrics.podMonitor" $values.metrics.podMonitor "metrics.prometheusRule" $values.metrics.prometheusRule "dashboards" $values.dashboards -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.labels" $where) "taken" $own "names" (keys (default dict $more.labels))) -}}
{{- end -}}
{{- include "muster.checkNames" (dict "where" "nats.podAnnotations" "taken" (list "checksum/config") "names" (keys (default dict $values.nats.podAnnotations))) -}}
{{- if and $values.policy.existingConfigMap $values.policy.roles -}}
{{- fail (printf "policy.roles and policy.existingConfigMap: the roles are those of ConfigMap %s, and no others are read; empty policy.roles" $values.policy.existingConfigMap) -}}
{{- end -}}
{{- if and $values.scaler.takeOver $values.scaler.resetReplicas -}}
{{- fail "scaler.takeOver and scaler.resetReplicas: the one keeps the pods of a pool, the other ends all but one; set one of them" -}}
{{- end -}}
{{- if and $values.scaler.takeOver (eq $values.scaler.mode "none") -}}
{{- fail "scaler.takeOver needs a scaler.mode other than none: it is a step on the way there" -}}
{{- end -}}
{{- if and (include "muster.hasAgent" .) (ne $values.scaler.mode "agent") (not $values.scaler.agent.act) -}}
{{- fail (printf "scaler.agent.act is false, and with scaler.mode %s the agent's number is carried out all the same: scaler.mode agent leaves the pools alone" $values.scaler.mode) -}}
{{- end -}}
{{- if and (eq $values.scaler.mode "keda") $values.scaler.keda.prometheus (not $values.metrics.enabled) -}}
{{- fail "scaler.keda.prometheus needs metrics.enabled: KEDA reads the queues' backlog from Prometheus" -}}
{{- end -}}
{{- if and (include "muster.hpaAsksAgent" .) (not $values.metrics.enabled) -}}
{{- fail "scaler.mode hpa needs metrics.enabled: the HPA reads the agent's number from Prometheus (or scaler.hpa.targetCPUUtilization)" -}}
{{- end -}}
{{- end -}}

{{/* What contradicts itself in a pool, or between it and what scales it. */}}
{{- define "muster.checkPools" -}}
{{- $allScaled := true -}}
{{- $most := 0 -}}
{{- $taken := list -}}
{{- range $pool, $own := .Values.pools -}}
{{- $conf := include "muster.poolConf" (dict "root" $ "pool" $pool) | fromJson -}}
{{- if gt (int $conf.scale.min) (int $conf.scale.max) -}}
{{- fail (printf "pools.%s.scale: min is %d, max is %d" $pool (int $conf.scale.min) (int $conf.scale.max)) -}}
{{- end -}}
{{- $jobs := list -}}
{{- range $conf.jobs -}}
{{- $job := splitList "=" . | first -}}
{{- if has $job $jobs }}{{ fail (printf "pools.%s.jobs: %s is there twice" $pool $job) }}{{ end -}}
{{- $jobs = append $jobs $job -}}
{{- end -}}
{{- $isScaled := include "muster.isScaled" (dict "root" $ "conf" $conf) -}}
{{- if and $isScaled (include "muster.hasAgent" $) -}}
{{- $queues := include "muster.poolQueues" (dict "root" $ "pool" $pool "conf" $conf) | fromJsonArray -}}
{{- include "muster.checkQueues" (dict "pool" $pool "queues" $queues "taken" $taken) -}}
{{- range $queues }}{{ $taken = append $taken (dict "pool" $pool "queue" .) }}{{ end -}}
{{- end -}}
{{- $replicas := ternary 2 $conf.replicas (kindIs "invalid" $conf.replicas) -}}
{{- $most = add $most (int (ternary $conf.scale.max $replicas (eq $isScaled "yes"))) -}}
{{- if and $isScaled (eq $.Values.scaler.mode "hpa") (not $.Values.scaler.hpa.metrics) (not (include "muster.hpaAsksAgent" $)) -}}
{{- include "muster.checkRequests" (dict "pool" $pool "conf" $conf) -}}
{{- end -}}
{{- if not $isScaled -}}
{{- $allScaled = false -}}
{{- else if not (kindIs "invalid" (index (default dict $own) "replicas")) -}}
{{- fail (printf "pools.%s.replicas: scaler.mode %s sizes this pool; take replicas out, or set pools.%s.scale.enabled to false" $pool $.Values.scaler.mode $pool) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "^[0-9]+$" (toString (get (default dict .Values.quota.hard) "pods")) -}}
{{- include "muster.checkQuota" (dict "root" . "processors" $most) -}}
{{- end -}}
{{- if and $allScaled (not (kindIs "invalid" .Values.processor.replicas)) -}}
{{- fail (printf "processor.replicas: scaler.mode %s sizes every pool; take replicas out, or set scale.enabled of a pool to false" .Values.scaler.mode) -}}
{{- end -}}
{{- end -}}

{{/* The pods of a namespace are also those that end while an upgrade starts others: what fits may be too little still. */}}
{{- define "muster.checkQuota" -}}
{{- $values := .root.Values -}}
{{- $most := add .processors $values.initiator.replicas 1 -}}
{{- if $values.nats.enabled }}{{ $most = add $most $values.nats.replicas }}{{ end -}}
{{- if $values.queueGateway.enabled }}{{ $most = add $most $values.queueGateway.replicas }}{{ end -}}
{{- if include "muster.hasAgent" .root }}{{ $most = add $most $values.scaler.agent.replicas }}{{ end -}}
{{- if lt (int64 $values.quota.hard.pods) $most -}}
{{- fail (printf "quota.hard.pods is %v: the replicas and scale.max of the values make %d pods" $values.quota.hard.pods $most) -}}
{{- end -}}
{{- end -}}

{{/* An HPA by CPU knows no number while a container of the pod requests none; a limit is a request, too. */}}
{{- define "muster.checkRequests" -}}
{{- range prepend (default list .conf.extraContainers) (dict "name" "processor" "resources" .conf.resources) -}}
{{- $resources := default dict .resources -}}
{{- if kindIs "invalid" (default (dig "limits" "cpu" nil $resources) (dig "requests" "cpu" nil $resources)) -}}
{{- fail (printf "pools.%s: scaler.hpa.targetCPUUtilization is a percentage of the CPU that containers request, and container %s requests none: set its resources.requests.cpu" $.pool .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What the agent's reader of rules refuses: two pools that would both grow for one queue. A queue of the rules stands
for its partitions, too. (dict "pool" NAME "queues" ITS "taken" LIST OF {pool, queue} BEFORE IT)
*/}}
{{- define "muster.checkQueues" -}}
{{- if gt (len .queues) 64 }}{{ fail (printf "pools.%s: it has %d queues; the agent takes 64 at most for one pool" .pool (len .queues)) }}{{ end -}}
{{- $seen := list -}}
{{- range $queue := .queues -}}
{{- if has $queue $seen }}{{ fail (printf "pools.%s.scale.queues: %s is there twice" $.pool $queue) }}{{ end -}}
{{- $seen = append $seen $queue -}}
{{- range $.taken -}}
{{- if or (eq $queue .queue) (eq (regexReplaceAll "-[0-9]+$" $queue "") .queue) (eq $queue (regexReplaceAll "-[0-9]+$" .queue "")) -}}
{{- fail (printf "pools.%s and pools.%s: both would grow for queue %s; only one pool that the agent sizes may have it (jobs, scale.queues; or scale.enabled: false)" .pool $.pool $queue) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Times that their readers refuse, and with which no service would start. */}}
{{- define "muster.checkTimes" -}}
{{- include "muster.checkTime" (dict "what" "mesh.lease" "time" .Values.mesh.lease "least" "1s" "most" "12h") -}}
{{- with .Values.controller.ownershipLease }}{{ include "muster.checkTime" (dict "what" "controller.ownershipLease" "time" . "least" "1s" "most" "10m") }}{{ end -}}
{{- if .Values.tls.certManager.enabled -}}
{{- $made := .Values.tls.certManager -}}
{{- include "muster.checkTime" (dict "what" "tls.certManager.duration" "time" $made.duration "least" "1h") -}}
{{- include "muster.checkTime" (dict "what" "tls.certManager.renewBefore" "time" $made.renewBefore "least" "5m") -}}
{{- if le (include "muster.milliseconds" $made.duration | float64) (include "muster.milliseconds" $made.renewBefore | float64) -}}
{{- fail (printf "tls.certManager.renewBefore is %s, duration %s: a certificate is renewed before it ends, and not before it begins" $made.renewBefore $made.duration) -}}
{{- end -}}
{{- end -}}
{{- if include "muster.hasAgent" . -}}
{{- include "muster.checkTime" (dict "what" "scaler.agent.coldStart" "time" .Values.scaler.agent.coldStart "most" "1h") -}}
{{- range $pool, $_ := .Values.pools -}}
{{- $scale := (include "muster.poolConf" (dict "root" $ "pool" $pool) | fromJson).scale -}}
{{- if $scale.enabled -}}
{{- include "muster.checkTime" (dict "what" (printf "pools.%s.scale.sla.max" $pool) "time" $scale.sla.max "least" "1ms" "most" "365d") -}}
{{- with $scale.sla.aim }}{{ include "muster.checkTime" (dict "what" (printf "pools.%s.scale.sla.aim" $pool) "time" . "least" "1ms" "most" $scale.sla.max) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (dict "what" VALUE "time" ITS TEXT ["least" TIME] ["most" TIME]) */}}
{{- define "muster.checkTime" -}}
{{- $time := include "muster.milliseconds" .time | float64 -}}
{{- if and .least (lt $time (include "muster.milliseconds" (default "0s" .least) | float64)) }}{{ fail (printf "%s is %s: at least %s" .what .time .least) }}{{ end -}}
{{- if and .most (gt $time (include "muster.milliseconds" (default "0s" .most) | float64)) }}{{ fail (printf "%s is %s: at most %s" .what .time .most) }}{{ end -}}
{{- end -}}

{{/* Of a time such as 1h30m. */}}
{{- define "muster.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(d|h|ms|m|s)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (index (dict "ms" 1.0 "s" 1000.0 "m" 60000.0 "h" 3600000.0 "d" 86400000.0) $unit)) -}}
{{- end -}}
{{ $sum }}
{{- end -}}

{{/* The bytes of a size such as 9GB, as the NATS server reads it, or 10Gi, as Kubernetes does. */}}
{{- define "muster.bytes" -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- $base := ternary 1000.0 1024.0 (eq (len $unit) 1) -}}
{{- $bytes := trimSuffix $unit . | float64 -}}
{{- range until (index (dict "" 0 "k" 1 "m" 2 "g" 3 "t" 4 "p" 5) (lower (trunc 1 $unit)) | int) }}{{ $bytes = mulf $bytes $base }}{{ end -}}
{{ $bytes }}
{{- end -}}
