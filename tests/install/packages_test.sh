#!/usr/bin/env bash
# Makes the Debian packages of a build and looks into them. What they do on a machine is shown by
# tests/fresh_machine/packages.
# Usage: packages_test.sh CPACK BUILD_DIR WORK_DIR
set -euo pipefail
cpack=$1 build=$2 work=$3

fail() {
  echo "FAILED: $*"
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
(cd "$build" && "$cpack" -G DEB -B "$work/made" > "$work/cpack.log" 2>&1) ||
  { cat "$work/cpack.log" && fail "cpack"; }
cd "$work"
runtime=$(echo made/muster_*.deb) development=$(echo made/muster-dev_*.deb)
dpkg-deb --extract "$runtime" runtime
dpkg-deb --control "$runtime" control
dpkg-deb --extract "$development" development

for file in usr/bin/muster usr/bin/muster-initiator usr/bin/muster-controller usr/bin/muster-processor \
  usr/bin/muster-scaling-agent usr/bin/muster-replica-keeper usr/bin/muster-queue-gateway \
  etc/muster/mesh.env etc/muster/rules.yaml \
  usr/lib/sysusers.d/muster.conf usr/share/muster/schema usr/share/doc/muster/copyright; do
  [ -e "runtime/$file" ] || fail "muster lacks $file"
done
for unit in runtime/usr/lib/systemd/system/muster-*.service; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
  [ -x "runtime$program" ] || fail "${unit##*/} starts $program, which is not in the package"
done
[ "$(stat -c %a runtime/etc/muster/mesh.env)" = 640 ] || fail "everybody can read mesh.env"
(cd runtime && find etc -type f -printf '/%p\n') | sort | diff - <(sort control/conffiles) ||
  fail "what lies in /etc is not what conffiles names"
for script in postinst prerm postrm; do
  [ -x "control/$script" ] || fail "$script is missing"
done
grep -q '^Depends: .*librocksdb' control/control || fail "the libraries are no dependencies"
[ -f development/usr/include/muster/muster/handler/handler.h ] || fail "muster-dev lacks headers"
find development -name musterConfig.cmake | grep -q . || fail "muster-dev lacks its CMake package"
[ ! -e runtime/usr/include ] || fail "muster has headers"
[ ! -e development/usr/bin ] || fail "muster-dev has programs"
! find runtime development -name '*_test*' -o -path '*conformance*' | grep . || fail "tests are packed"
