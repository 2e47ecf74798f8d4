#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Makes the Debian packages of a build and looks into them. What they do on a machine is shown by
# tests/fresh_machine/packages.
# Usage: packages_test.sh CPACK BUILD_DIR WORK_DIR
set -euo pipefail
cpack=$1 build=$2 work=$3
sources=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
  echo "FAILED: $*"
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
(cd "$build" && "$cpack" -G DEB -B "$work/made" > "$work/cpack.log" 2>&1) ||
  { cat "$work/cpack.log" && fail "cpack"; }
cd "$work"
for package in muster muster-services muster-dev; do
  dpkg-deb --raw-extract made/"${package}"_*.deb "$package"
done

has() {
  local package=$1 file
  shift
  for file in "$@"; do
    [ -e "$package/$file" ] || fail "$package lacks $file"
  done
}
has muster usr/bin/muster usr/share/muster/schema usr/share/doc/muster/copyright
has muster-services usr/bin/muster-scaling-agent usr/bin/muster-replica-keeper usr/bin/muster-queue-gateway \
  etc/muster/mesh.env etc/muster/rules.yaml usr/lib/sysusers.d/muster.conf usr/share/doc/muster-services/copyright
for service in initiator controller processor; do
  link=muster-services/usr/bin/muster-$service
  [ "$(readlink "$link")" = muster ] || fail "$link is no link to the command"
  ln -sf "$PWD/muster/usr/bin/muster" "$link"  # as on a machine with both packages
done
has muster-dev usr/include/muster/muster/handler/handler.h usr/share/doc/muster-dev/copyright
find muster-dev -name musterConfig.cmake | grep -q . || fail "muster-dev lacks its CMake package"

units=(muster-services/usr/lib/systemd/system/muster-*.service)
[ "${#units[@]}" -eq "$(find "$sources/deploy/systemd" -name '*.service' | wc -l)" ] || fail "muster-services lacks units"
for unit in "${units[@]}"; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
  [ -x "muster-services$program" ] || fail "${unit##*/} starts $program, which is not in the package"
done
[ "$(stat -c %a muster-services/etc/muster/mesh.env)" = 640 ] || fail "everybody can read mesh.env"
(cd muster-services && find etc -type f -printf '/%p\n') | sort | diff - <(sort muster-services/DEBIAN/conffiles) ||
  fail "what lies in /etc is not what conffiles names"
for folder in grafana prometheus; do
  diff -r "$sources/deploy/$folder" "muster/usr/share/muster/$folder" || fail "muster lacks files of deploy/$folder"
done
for script in postinst prerm postrm; do
  [ -x "muster-services/DEBIAN/$script" ] || fail "$script is missing"
done
[ "$(cd muster/DEBIAN && echo *)" = "control md5sums" ] || fail "muster does something when it is installed"

# The two may not part: a mesh of one version with the command of another is tried by nobody.
version=$(sed -n 's/^Version: //p' muster/DEBIAN/control)
grep "^Depends:" muster-services/DEBIAN/control | grep -qF " muster (= $version)," ||
  fail "muster-services takes another version of muster"
# A library whose package says nothing to dpkg-shlibdeps was missing once.
for package in muster muster-services; do
  depends=$(sed -n 's/^Depends: //p' "$package/DEBIAN/control" | tr ',' '\n' | awk '{ print $1 }')
  for library in $(objdump -p "$package"/usr/bin/* | awk '/NEEDED/ { print $2 }' | sort -u); do
    owners=$(dpkg-query --search "*/$library" | sed 's/[:,].*//')
    grep -qxF "$owners" <<< "$depends" || fail "$package needs $library, and not its package $owners"
  done
done

# Each file belongs to one package, and to the right one.
find muster muster-services muster-dev ! -type d ! -path '*/DEBIAN/*' -printf '%P\n' | sort | uniq -d | grep . &&
  fail "two packages have these files"
[ "$(cd muster/usr/bin && echo *)" = muster ] || fail "muster has programs of a mesh"
for other in muster/etc muster/usr/include muster-services/usr/include muster-dev/usr/bin; do
  [ ! -e "$other" ] || fail "$other belongs into another package"
done
! find muster muster-services muster-dev -name '*_test*' -o -path '*conformance*' | grep . || fail "tests are packed"
