{{/* The file of the NATS servers. They read it when they start, so its checksum is an annotation of their pods. */}}
{{- define "muster.natsConf" -}}
{{- $name := include "muster.componentName" (dict "root" . "component" "nats") -}}
{{- $servers := include "muster.natsServers" . | fromJsonArray -}}
{{- $tls := .Values.tls.enabled -}}
server_name: $POD_NAME
listen: "{{ .Values.listenAddress }}:4222"
http: "{{ .Values.listenAddress }}:8222"
pid_file: "/tmp/nats.pid"
lame_duck_grace_period: 5s
lame_duck_duration: 30s
jetstream {
  store_dir: "/data"
  max_memory_store: {{ .Values.nats.memoryStore }}
  max_file_store: {{ .Values.nats.fileStore }}
  {{- if .Values.nats.syncAlways }}
  sync_interval: always
  {{- end }}
}
{{- if $tls }}
tls {
  cert_file: "/etc/nats/tls/tls.crt"
  key_file: "/etc/nats/tls/tls.key"
  ca_file: "/etc/nats/tls/ca.crt"
  verify: true
}
{{- end }}
{{- if gt (int .Values.nats.replicas) 1 }}
cluster {
  name: "{{ $name }}"
  listen: "{{ .Values.listenAddress }}:6222"
  routes: [
    {{- range $servers }}
    "nats://{{ . }}:6222"
    {{- end }}
  ]
  {{- if $tls }}
  tls {
    cert_file: "/etc/nats/tls/tls.crt"
    key_file: "/etc/nats/tls/tls.key"
    ca_file: "/etc/nats/tls/ca.crt"
    verify: true
  }
  {{- end }}
}
{{- end }}
accounts { MUSTER {
  jetstream: enabled
  users: [ { user: muster, password: $MUSTER_NATS_PASSWORD, permissions: {
    publish: ["muster.>", "$JS.API.>", "$JS.ACK.>", "$KV.{{ .Values.mesh.bucket }}.>", "$O.{{ .Values.mesh.bucket }}.>", "_INBOX.>"]
    subscribe: ["muster.>", "_INBOX.>", "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.>"] } } ]
} }
{{- end -}}
