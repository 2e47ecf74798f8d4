# shellcheck shell=bash
# Helm, for the tests of the chart in helm/muster, built from its Go module. Sourced, after say.sh.

helm_version=v3.22.0
# The cluster that `helm template` renders for; a release of Helm is built with one, too.
helm_kubernetes_minor=36

# Sets MUSTER_HELM to the program, unless it is set already. Leaves it unset where there is neither a
# helm nor a Go that can build it; the tests are then skipped.
build_helm() {
  [ -z "${MUSTER_HELM:-}" ] || return 0
  local folder=$PWD/build/tools capabilities=helm.sh/helm/v3/pkg/chartutil
  if [ "$("$folder/helm" version --template '{{.Version}}' 2> /dev/null)" != "$helm_version" ]; then
    if ! command -v go > /dev/null; then
      if ! MUSTER_HELM=$(command -v helm); then
        unset MUSTER_HELM
        say "there is no Go and no helm: the tests of the chart are left out"
        return 0
      fi
      export MUSTER_HELM
      return 0
    fi
    say "building helm $helm_version with Go"
    if ! GOBIN=$folder CGO_ENABLED=0 GOFLAGS=-mod=mod nice -n 15 go install -trimpath \
      -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$helm_version \
        -X $capabilities.k8sVersionMajor=1 -X $capabilities.k8sVersionMinor=$helm_kubernetes_minor" \
      "helm.sh/helm/v3/cmd/helm@$helm_version" < /dev/null; then
      say "Go cannot build it; the tests of the chart are left out"
      return 0
    fi
  fi
  export MUSTER_HELM=$folder/helm
}
