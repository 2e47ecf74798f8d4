#!/usr/bin/env bash
# prometheus_client 0.26.0 (for Python) and prom-client 15.1.3 (for JavaScript): a counter takes NaN, and is NaN from
# then on. A negative number it refuses.
#
# Guess: inc() of NaN is refused like inc(-1), for both would ruin a sum that only grows. prom-client's histograms
# refuse it.
# Seen: after inc(1), inc(NaN), inc(1) both expose NaN. A histogram for Python takes NaN, too: its sum is NaN for good,
# and its count has not grown.
#
# Who it hurts: whoever counts seconds, bytes or money by a counter and divides by zero once. Until the process is
# restarted, the rate is NaN, and so is each sum that has it: alerts that compare it with a number are silent.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check prometheus_client==0.26.0
npm install --silent --prefix "$work/node" prom-client@15.1.3

cat > "$work/seen.py" << 'PYTHON'
import prometheus_client as prometheus

registry = prometheus.CollectorRegistry()
counter = prometheus.Counter("c", "help", registry=registry)
histogram = prometheus.Histogram("h", "help", registry=registry)
refused = ""
for number in (1, float("nan"), 1):
    counter.inc(number)
    histogram.observe(number)
try:
    counter.inc(-1)
except ValueError:
    refused = "-1 is refused"
print(*(f"{name} {registry.get_sample_value(name)}" for name in ("c_total", "h_count", "h_sum")), refused)
PYTHON
cat > "$work/node/seen.js" << 'PROGRAM'
const prometheus = require("prom-client");
const counter = new prometheus.Counter({ name: "c", help: "help" });
const histogram = new prometheus.Histogram({ name: "h", help: "help" });
const tried = (deed) => { try { deed(); return "taken"; } catch { return "refused"; } };
for (const number of [1, NaN, 1]) counter.inc(number);
counter.get().then(({ values }) => console.log(`c ${values[0].value},`, `-1 is ${tried(() => counter.inc(-1))},`,
  `NaN in a histogram is ${tried(() => histogram.observe(NaN))}`));
PROGRAM
python=$("$work/venv/bin/python" "$work/seen.py")
node=$(node "$work/node/seen.js")
echo "prometheus_client 0.26.0: $python"
echo "prom-client 15.1.3: $node"
[ "$python" = "c_total nan h_count 2.0 h_sum nan -1 is refused" ]
[ "$node" = "c NaN, -1 is refused, NaN in a histogram is refused" ]
