#!/usr/bin/env bash
# simple-backoff 1.1.0 (waits between tries for JavaScript): FixedBackoff cuts off each wait of its list at ten seconds.
# 1, 30 and 60 seconds are 1, 10 and 10.
#
# Guess: the waits of the list. The documentation says that they are explicit, for which reason max is not accepted.
# Seen: 1000, 10000 and 10000. The limit is the default of max, which the other kinds have; to set it is an error.
#
# Who it hurts: whoever lists long waits to spare a service that is down: it is called three and six times as often, and
# no option lifts the limit.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" simple-backoff@1.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { FixedBackoff } = require("simple-backoff");

const waits = new FixedBackoff({ sequence: [1000, 30000, 60000] });
const seen = [waits.next(), waits.next(), waits.next()];
try {
  new FixedBackoff({ sequence: [1000, 30000, 60000], max: 60000 });
} catch (error) {
  seen.push(error.message.replaceAll("`", ""));
}
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "simple-backoff 1.1.0, waits of 1000, 30000 and 60000, and the error of max: $seen"
[ "$seen" = "1000, 10000, 10000, FixedBackoff: max is invalid for this strategy" ]
