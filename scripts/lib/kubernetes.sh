# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# A real Kubernetes for tests: the released programs, built from their Go modules. Sourced, after say.sh.
#
# The first build takes some minutes and 3 GB, so all checkouts share the folder with the programs.

kubernetes_version=v1.36.3
containerd_version=v2.2.1
coredns_version=v1.13.1
kwok_version=v0.8.0
kubeconform_version=v0.8.0
keda_version=v2.21.0
kubernetes_folder=${MUSTER_KUBERNETES_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/kubernetes-$kubernetes_version}

# The API server with its controllers, and what a node needs on top of them. Those of
# tests/kubernetes/servers are built together.
kubernetes_programs=(etcd kube-apiserver kube-controller-manager)
node_servers=(kube-scheduler kubelet kube-proxy kubectl pause)
node_programs=("${node_servers[@]}" containerd containerd-shim-runc-v2 ctr coredns kwok)

kubernetes_has() {
  local program
  for program in "$@"; do
    [ -x "$kubernetes_folder/$program" ] || return 1
  done
}

kubernetes_is_built() { kubernetes_has "${kubernetes_programs[@]}"; }

node_is_built() { kubernetes_has "${kubernetes_programs[@]}" "${node_programs[@]}"; }

# Runs Go in the folder $1 with the other arguments. Another process may build the same meanwhile, so
# programs appear in the folder when they are whole.
go_for_kubernetes() {
  local place=$1 building
  shift
  mkdir -p "$kubernetes_folder"
  building=$(mktemp --directory "$kubernetes_folder/building.XXXXXX")
  if (cd "$place" && GOBIN=$building CGO_ENABLED=0 GOFLAGS='' BUILDING=$building nice -n 15 "$@" < /dev/null); then
    mv "$building"/* "$kubernetes_folder/" && rmdir "$building"
  else
    rm -rf "$building"
    return 1
  fi
}

# Builds the named programs of tests/kubernetes/servers.
build_servers() {
  # shellcheck disable=SC2016  # the inner shell expands
  go_for_kubernetes tests/kubernetes/servers bash -c 'go build -trimpath -buildvcs=false -o "$BUILDING/" \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$0" "$@"' "$kubernetes_version" "${@/#/./}"
}

# Builds programs of released modules: NAME@VERSION…
install_released() {
  go_for_kubernetes . go install -trimpath -tags 'no_btrfs no_aufs no_devmapper no_zfs' -ldflags '-s -w' "$@"
}

# Builds the programs that are missing. Fails where there is no Go, or it cannot fetch the modules.
build_kubernetes() {
  ! kubernetes_is_built || return 0
  command -v go > /dev/null || { say "Kubernetes is not built: there is no Go" && return 1; }
  say "building Kubernetes $kubernetes_version into $kubernetes_folder with Go: some minutes, once"
  build_servers "${kubernetes_programs[@]}" ||
    { say "Kubernetes is not built: Go cannot build it, or not fetch its modules" && return 1; }
}

install_node() {
  local containerd=github.com/containerd/containerd/v2/cmd
  kubernetes_has "${node_servers[@]}" || build_servers "${node_servers[@]}" || return 1
  kubernetes_has containerd containerd-shim-runc-v2 ctr ||
    install_released "$containerd"/{containerd,containerd-shim-runc-v2,ctr}"@$containerd_version" || return 1
  kubernetes_has coredns || install_released "github.com/coredns/coredns@$coredns_version" || return 1
  kubernetes_has kwok || install_released "sigs.k8s.io/kwok/cmd/kwok@$kwok_version"
}

# The same for the programs of a node, those above included.
build_node() {
  ! node_is_built || return 0
  build_kubernetes || return 1
  say "building the programs of a node into $kubernetes_folder with Go: some minutes, once"
  install_node || { say "the node is not built: Go cannot build it, or not fetch its modules" && return 1; }
}

# kubeconform, and the documents that it checks manifests against, for tests/helm/schemas_test.py: RELEASE…
build_checks() {
  kubernetes_has kubeconform ||
    install_released "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform_version" || return 1
  tests/helm/documents "$kubernetes_folder/documents" "$@" || return 1
}

# KEDA's operator and metrics adapter, built as its own repository does: its go.mod replaces modules, which `go install`
# refuses. Its manifests come with them.
build_keda() {
  ! kubernetes_has "keda-$keda_version/operator" "keda-$keda_version/adapter" || return 0
  local module copied status=0
  say "building KEDA $keda_version into $kubernetes_folder with Go: 15 minutes of two cores, once"
  module=$(go mod download -json "github.com/kedacore/keda/v2@$keda_version" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])') || return 1
  copied=$(mktemp --directory)
  cp -r --no-preserve=mode "$module/." "$copied"
  # shellcheck disable=SC2016  # the inner shell expands
  go_for_kubernetes "$copied" bash -c 'mkdir "$BUILDING/keda-$0" && cp -r config "$BUILDING/keda-$0/" &&
    go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$BUILDING/keda-$0/" ./cmd/operator ./cmd/adapter' \
    "$keda_version" || status=1
  rm -rf "$copied"
  return "$status"
}
