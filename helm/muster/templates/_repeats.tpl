{{/*
Refuses names in the labels, annotations and extra lists of a component that the chart sets itself, or that stand there twice. An API
server refuses some of them; Helm 3 keeps one of the two, and says nothing.
(dict "spec" THE POD'S "root" $ "component" NAME ["pool" NAME] "conf" VALUES "data" VOLUME OF THE CLAIM)
*/}}
{{- define "muster.checkRepeats" -}}
{{- $where := get (dict "scaling-agent" "scaler.agent" "queue-gateway" "queueGateway") .component | default .component -}}
{{- with .pool }}{{ $where = printf "pools.%s" . }}{{ end -}}
{{- include "muster.checkLabels" (merge (dict "where" $where) .) -}}
{{- $container := first .spec.containers -}}
{{- /* What is extra comes last. An option has a variable, too, which it overrides. */ -}}
{{- $variables := list -}}
{{- $options := list -}}
{{- range slice $container.env 0 (int (sub (len $container.env) (len (default list .conf.extraEnv)))) -}}
{{- $variables = append $variables .name -}}
{{- if hasPrefix "MUSTER_" .name }}{{ $options = append $options (printf "--%s" (trimPrefix "MUSTER_" .name | lower | replace "_" "-")) }}{{ end -}}
{{- end -}}
{{- $args := default list $container.args -}}
{{- $extraArgs := default list .conf.extraArgs -}}
{{- range slice $args 0 (int (sub (len $args) (len $extraArgs))) -}}
{{- $option := splitList "=" . | first -}}
{{- $options = append $options $option -}}
{{- $variables = append $variables (printf "MUSTER_%s" (trimPrefix "--" $option | upper | replace "-" "_")) -}}
{{- end -}}
{{- if contains "--advertise=" (join " " $container.command) }}{{ $options = append $options "--advertise" }}{{ end -}}
{{- $extraOptions := list -}}
{{- range $extraArgs -}}
{{- $option := splitList "=" . | first -}}
{{- /* These three make lists. */ -}}
{{- if and (hasPrefix "--" $option) (not (has $option (list "--job" "--handler-programs" "--handler-env"))) -}}
{{- $extraOptions = append $extraOptions $option -}}
{{- end -}}
{{- end -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.extraArgs" $where) "taken" $options "names" $extraOptions) -}}
{{- include "muster.checkExtra" (dict "where" $where "what" "extraEnv" "conf" .conf "taken" $variables "key" "name") -}}
{{- $taken := list -}}
{{- range slice .spec.volumes 0 (int (sub (len .spec.volumes) (len (default list .conf.extraVolumes)))) }}{{ $taken = append $taken .name }}{{ end -}}
{{- with .data }}{{ $taken = append $taken . }}{{ end -}}
{{- include "muster.checkExtra" (dict "where" $where "what" "extraVolumes" "conf" .conf "taken" $taken "key" "name") -}}
{{- $taken = list -}}
{{- range slice $container.volumeMounts 0 (int (sub (len $container.volumeMounts) (len (default list .conf.extraVolumeMounts)))) }}{{ $taken = append $taken .mountPath }}{{ end -}}
{{- include "muster.checkExtra" (dict "where" $where "what" "extraVolumeMounts" "conf" .conf "taken" $taken "key" "mountPath") -}}
{{- include "muster.checkExtra" (dict "where" $where "what" "extraContainers" "conf" .conf "taken" (list $container.name) "key" "name") -}}
{{- end -}}

{{/* Labels and annotations: (dict "where" COMPONENT "root" $ "component" NAME ["pool" NAME] "conf" VALUES) */}}
{{- define "muster.checkLabels" -}}
{{- $own := include "muster.selectorLabels" . | fromYaml | keys -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.podLabels" .where) "taken" $own "names" (keys (default dict .conf.podLabels))) -}}
{{- $own = include "muster.labels" . | fromYaml | keys -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.workloadLabels" .where) "taken" $own "names" (keys (default dict .conf.workloadLabels))) -}}
{{- $own = ternary (list "muster.io/replicas") list (eq .component "processor") -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.workloadAnnotations" .where) "taken" $own "names" (keys (default dict .conf.workloadAnnotations))) -}}
{{- end -}}

{{/* (dict "where" COMPONENT "what" LIST OF ITS VALUES "conf" THEM "taken" NAMES OF THE CHART "key" THE MEMBER WITH THE NAME) */}}
{{- define "muster.checkExtra" -}}
{{- $names := list -}}
{{- range (index .conf .what) }}{{ $names = append $names (get . $.key) }}{{ end -}}
{{- include "muster.checkNames" (dict "where" (printf "%s.%s" .where .what) "taken" .taken "names" $names) -}}
{{- end -}}

{{/* (dict "where" VALUE "taken" NAMES OF THE CHART "names" THOSE OF THE VALUE) */}}
{{- define "muster.checkNames" -}}
{{- $seen := list -}}
{{- range .names -}}
{{- if has . $.taken }}{{ fail (printf "%s: %s is set by the chart: take it out, and use the value for it where there is one" $.where .) }}{{ end -}}
{{- if has . $seen }}{{ fail (printf "%s: %s is there twice" $.where .) }}{{ end -}}
{{- $seen = append $seen . -}}
{{- end -}}
{{- end -}}
