#!/usr/bin/env bash
# js-money 0.6.3 and ts-money 0.4.8 (amounts for JavaScript): of an amount that does not divide evenly, a share of 0
# gets a cent if it stands first. 1.00 by 0, 1 and 2 is 0.01, 0.33 and 0.66.
#
# Guess: 0.00, 0.34 and 0.66, or 0.33 and 0.67: whoever has no share gets nothing.
# Seen: 1, 33 and 66 cents, and 5 cents by 0, 0, 3 and 7 are 1, 0, 1 and 3. Of -1.00 the share of 0 is +0.01, and the
# two others pay 1.01. With the 0 last, 67, 33 and 0 cents are right.
#
# Who it hurts: whoever splits a bill or a payout by usage, with those in the list who used nothing: they get bills of a
# cent, or pay the wrong way round.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" js-money@0.6.3 ts-money@0.4.8
cat > "$work/seen.cjs" << 'PROGRAM'
const js = require("js-money");
const { Money } = require("ts-money");

const shares = [[100, [0, 1, 2]], [5, [0, 0, 3, 7]], [-100, [0, 1, 2]], [100, [2, 1, 0]]];
const all = (kind) => shares.map(([cents, by]) => new kind(cents, "EUR").allocate(by).map((share) => share.amount));
console.log(all(js).join(" "), all(Money).join(" ") === all(js).join(" "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "js-money 0.6.3, and whether ts-money 0.4.8 has the same: $seen"
[ "$seen" = "1,33,66 1,0,1,3 1,-34,-67 67,33,0 true" ]
