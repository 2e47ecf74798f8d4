# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Helm, for the tests of the chart in helm/muster, built from its Go modules. Sourced, after say.sh.

helm_version=v3.22.0
# The tests labelled deep run with this one, too. The gate does not: from nothing, Go takes minutes of two cores to
# build it, and the tests of the chart a minute more, of the half hour that the gate has.
helm4_version=v4.3.1
# The cluster that `helm template` renders for; a release of Helm 3 is built with one, too.
helm_kubernetes_minor=36

# Builds build/tools/NAME unless it is there in this version: NAME MAJOR VERSION [LINKER FLAGS]. Fails where there
# is no Go, or it cannot fetch the module.
install_helm() {
  local name=$1 major=$2 version=$3 flags=${4:-} folder=$PWD/build/tools building status=0
  [ "$("$folder/$name" version --template '{{.Version}}' 2> /dev/null)" != "$version" ] || return 0
  command -v go > /dev/null || return 1
  say "building helm $version with Go"
  mkdir -p "$folder"
  building=$(mktemp --directory "$folder/building.XXXXXX")
  GOBIN=$building CGO_ENABLED=0 GOFLAGS=-mod=mod nice -n 15 go install -trimpath \
    -ldflags "-s -w -X helm.sh/helm/$major/internal/version.version=$version $flags" \
    "helm.sh/helm/$major/cmd/helm@$version" < /dev/null && mv "$building/helm" "$folder/$name" || status=1
  rm -rf "$building"
  return "$status"
}

# Sets MUSTER_HELM to the program, unless it is set already. Leaves it unset where there is neither a
# helm nor a Go that can build it; the tests are then skipped.
build_helm() {
  [ -z "${MUSTER_HELM:-}" ] || return 0
  local capabilities=helm.sh/helm/v3/pkg/chartutil
  if install_helm helm v3 "$helm_version" \
    "-X $capabilities.k8sVersionMajor=1 -X $capabilities.k8sVersionMinor=$helm_kubernetes_minor"; then
    MUSTER_HELM=$PWD/build/tools/helm
  elif ! MUSTER_HELM=$(command -v helm); then
    unset MUSTER_HELM
    say "there is no helm, and no Go that can build it: the tests of the chart are left out"
    return 0
  fi
  export MUSTER_HELM
}

# The same for MUSTER_HELM4, of which there is no other program.
build_helm4() {
  [ -z "${MUSTER_HELM4:-}" ] || return 0
  if ! install_helm helm4 v4 "$helm4_version"; then
    say "there is no Go that can build Helm 4: its tests are left out"
    return 0
  fi
  export MUSTER_HELM4=$PWD/build/tools/helm4
}
