# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Machines that have nothing: a minimal Debian made by debootstrap in a folder, entered with chroot.
# Sourced, after say.sh.
#
# Needs root and debootstrap, and systemd-nspawn for those that are booted. Packages come through the host's own apt configuration: its first Debian
# mirror, its proxies and certificates. All mounts live in a mount namespace of their own, and go with
# it, so that removing the folder can never reach the host.

[ "$(id -u)" -eq 0 ] || fail "needs root, for debootstrap and chroot"
command -v debootstrap > /dev/null || fail "needs debootstrap: apt-get install debootstrap"

# The host's Debian mirror, as apt itself understands its configuration.
# shellcheck disable=SC2016  # apt-get expands
mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
  awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
[ -n "$mirror" ] || fail "apt knows no Debian mirror: run apt-get update first"

# Gives the new machine the host's way to the mirror: name servers, apt's proxies, certificates.
give_network() {
  local root=$1
  cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump | grep -E '^Acquire::(http|https|Check)' > "$root/etc/apt/apt.conf.d/90host" || true
  if [ -s /etc/ssl/certs/ca-certificates.crt ]; then
    install -D --mode=644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  fi
}

# The cache of this host's compilers, which the machines share. ccache takes an object from it only for the same
# compiler, flags, sources and headers, so a machine that lacks one of these still compiles, and fails.
compiler_cache=$(ccache --get-config cache_dir 2> /dev/null) || compiler_cache=$HOME/.cache/ccache

# Runs a command in /root/muster of the new machine as a new user would: an empty environment, and a terminal's
# worth of kernel file systems. A clone there is mounted at the path of this one, and the command runs there:
# ccache has no object for another path.
on_machine() {
  local root=$1 place=/root/muster
  shift
  if [ -e "$root/root/muster/.git" ]; then
    place=$PWD
    mkdir -p "$compiler_cache" "$root/root/.cache/ccache" "$root$place"
  fi
  # shellcheck disable=SC2016  # the inner shell expands
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$0
    place=$1
    cache=$2
    shift 2
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev/shm"
    if [ "$place" != /root/muster ]; then
      mount --bind "$cache" "$root/root/.cache/ccache"
      mount --bind "$root/root/muster" "$root$place"
    fi
    exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 ${CCACHE_MAXSIZE:+CCACHE_MAXSIZE="$CCACHE_MAXSIZE"} \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      bash -c "cd \"$place\" && exec \"\$@\"" machine "$@"
  ' "$root" "$place" "$compiler_cache" "$@" < /dev/null
}

# Boots the machine with systemd, without a network, runs a command on it, and ends with the command's
# exit code when the machine is down again.
on_booted_machine() {
  local root=$1 status=0
  shift
  cat > "$root/etc/systemd/system/on-boot.service" << UNIT
[Unit]
After=multi-user.target
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
WorkingDirectory=/root/muster
Environment=HOME=/root LANG=C.UTF-8
ExecStart=/root/muster/$*
StandardOutput=file:/root/muster/on-boot.log
StandardError=inherit

[Install]
WantedBy=default.target
UNIT
  chroot "$root" systemctl enable --quiet on-boot.service
  systemd-nspawn --quiet --directory "$root" --machine "machine-$$" --register=no --keep-unit --private-network \
    --boot --console=pipe > "$root.boot.log" 2>&1 < /dev/null || status=$?
  cat "$root/root/muster/on-boot.log"
  [ "$status" -eq 0 ] || tail "$root.boot.log"
  return "$status"
}

# Makes a minimal Debian of the suite $1 in the folder $2.
make_machine() {
  local suite=$1 root=$2
  say "$suite: a minimal Debian in $root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" > "$root.log" 2>&1 ||
    { tail "$root.log" && return 1; }
  give_network "$root"
}

# Runs try_suite SUITE FOLDER for each suite that is named, in a temporary folder, and counts. $1: yes
# leaves the folders in place.
try_suites() {
  local keep=$1 work suite started passed=0 failed=0
  shift
  work=$(mktemp --directory --tmpdir muster-fresh-machine.XXXXXX)
  # shellcheck disable=SC2064  # the folder of now
  trap "[ -n '$keep' ] && echo 'kept in $work' || rm -rf --one-file-system '$work'" EXIT
  for suite in "$@"; do
    started=$SECONDS
    (set -e && try_suite "$suite" "$work/$suite") &
    if wait $!; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    say "$suite took $((SECONDS - started)) s"
  done
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
