# shellcheck shell=bash
# A real Kubernetes for tests: the released API server with RBAC, controllers and etcd, built from
# their Go modules. Sourced, after say.sh.
#
# The first build takes some minutes and 3 GB, so all checkouts share the folder with the programs.

kubernetes_version=v1.36.3
kubernetes_programs=(etcd kube-apiserver kube-controller-manager)
kubernetes_folder=${MUSTER_KUBERNETES_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/kubernetes-$kubernetes_version}

kubernetes_is_built() {
  local program
  for program in "${kubernetes_programs[@]}"; do
    [ -x "$kubernetes_folder/$program" ] || return 1
  done
}

# Builds the programs that are missing. Fails where there is no Go, or it cannot fetch the modules.
build_kubernetes() {
  ! kubernetes_is_built || return 0
  command -v go > /dev/null || { say "Kubernetes is not built: there is no Go" && return 1; }
  say "building Kubernetes $kubernetes_version into $kubernetes_folder with Go: some minutes, once"
  local building=$kubernetes_folder.$$
  mkdir -p "$building"
  if ! (cd tests/kubernetes/servers && CGO_ENABLED=0 GOFLAGS='' nice -n 15 go build -trimpath \
    -buildvcs=false -o "$building/" \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes_version" \
    "${kubernetes_programs[@]/#/./}" < /dev/null); then
    rm -rf "$building"
    say "Kubernetes is not built: Go cannot build it, or not fetch its modules"
    return 1
  fi
  # Another process may have built them meanwhile; the two builds are equivalent.
  rm -rf "$kubernetes_folder"
  mv "$building" "$kubernetes_folder"
}
