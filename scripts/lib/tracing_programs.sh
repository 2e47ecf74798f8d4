# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# A real OpenTelemetry Collector and a real Jaeger for tests of traces, built from their Go modules. Sourced,
# after say.sh.
#
# The first build takes some minutes, so all checkouts share the folder with the programs.

collector_version=v0.165.0
jaeger_version=v1.76.0

# Builds what is missing, and sets MUSTER_COLLECTOR and MUSTER_JAEGER. Fails where there is no Go, or it
# cannot fetch the modules.
build_tracing_programs() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/muster/tracing-$collector_version-$jaeger_version
  export MUSTER_COLLECTOR=$folder/collector MUSTER_JAEGER=$folder/jaeger
  [ ! -x "$MUSTER_JAEGER" ] || return 0
  command -v go > /dev/null || { say "there is no Go, which builds the Collector and Jaeger" && return 1; }
  say "building the OpenTelemetry Collector $collector_version and Jaeger $jaeger_version into $folder with Go"
  local work status=0
  mkdir -p "${folder%/*}"
  work=$(mktemp --directory "$folder.XXXXXX")
  mkdir "$work/made"
  # Another process may build the same meanwhile, so the folder appears when it is whole.
  (build_collector "$work" && build_jaeger "$work" &&
    { mv --no-target-directory "$work/made" "$folder" 2> /dev/null || [ -x "$MUSTER_JAEGER" ]; }) || status=$?
  chmod -R u+w "$work" && rm -rf "$work"
  return "$status"
}

# go_in PLACE ARGUMENT…: whatever a Go workspace of the user's says.
go_in() { (cd "$1" && shift && GOBIN=$PWD GOFLAGS='' GOWORK=off CGO_ENABLED=0 nice -n 15 go "$@" < /dev/null); }

# By the collector's own builder, of the parts that it is told.
build_collector() {
  local work=$1 module=go.opentelemetry.io/collector
  go_in "$work" install "$module/cmd/builder@$collector_version" || return
  cat > "$work/collector.yaml" << YAML
dist: {name: collector, output_path: $work/collector-source}
receivers: [{gomod: $module/receiver/otlpreceiver $collector_version}]
processors: [{gomod: $module/processor/batchprocessor $collector_version}]
exporters: [{gomod: $module/exporter/otlpexporter $collector_version}]
YAML
  GOFLAGS='' GOWORK=off CGO_ENABLED=0 nice -n 15 "$work/builder" --config "$work/collector.yaml" < /dev/null &&
    mv "$work/collector-source/collector" "$work/made/"
}

# Its module replaces another one, which `go install` refuses; so it is built as a part of a module of ours.
build_jaeger() {
  local work=$1 place=$1/jaeger-source module=github.com/jaegertracing/jaeger
  mkdir "$place" &&
    go_in "$place" mod init tracing &&
    go_in "$place" mod edit -replace=github.com/Shopify/sarama=github.com/Shopify/sarama@v1.33.0 &&
    go_in "$place" get "$module/cmd/all-in-one@$jaeger_version" &&
    go_in "$place" build -trimpath -ldflags '-s -w' -o "$work/made/jaeger" "$module/cmd/all-in-one"
}
