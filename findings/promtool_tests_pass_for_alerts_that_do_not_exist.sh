#!/usr/bin/env bash
# promtool 2.42.0 (of Debian 12): a test of an alert that is in none of the rule files passes if it expects no alert.
#
# Guess: an alertname that no rule file has is an error of the test, as a rule file that is not there is.
# Seen: the rule file has the alert QueueStuck, which fires in the test. A test of it that expects nothing fails, as it
# should. With the name QueueStukc, or after the rule was renamed, the test is "SUCCESS", exit code 0.
#
# Who it hurts: tests that an alert is silent, such as "no alert while the night's batch runs". They pass for ever once
# the alert has another name, whatever it does.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 prometheus=2.42.0+ds-5+deb12u1 2> /dev/null
dpkg-deb --extract prometheus_*.deb package

cat > rules.yml << 'RULES'
groups:
  - name: queue
    rules: [{alert: QueueStuck, expr: queue_messages > 0, for: 1m}]
RULES
verdict() { # ALERTNAME
  local code=0
  cat > test.yml << TEST
rule_files: [rules.yml]
tests:
  - interval: 1m
    input_series: [{series: queue_messages, values: '5 5 5 5'}]
    alert_rule_test: [{eval_time: 3m, alertname: $1}]
TEST
  package/usr/bin/promtool test rules test.yml > log 2>&1 || code=$?
  echo "promtool 2.42.0: while QueueStuck fires, no $1 is expected: exit code $code" >&2
  echo "$code"
}
[ "$(verdict QueueStuck)" = 1 ]
[ "$(verdict QueueStukc)" = 0 ]
grep -q SUCCESS log
