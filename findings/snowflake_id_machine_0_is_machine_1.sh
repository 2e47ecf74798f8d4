#!/usr/bin/env bash
# snowflake-id 1.1.0 (unique numbers of 64 bits for JavaScript): the machines 0 and 1 make the same ids, and 1023, the
# last machine that ten bits have, is 0.
#
# Guess: machines 0 to 1023, as the documentation has a machine id of ten bits; ids of two machines are never the same.
# Seen: in one millisecond, 0, 1 and 1024 make the same id, and 1023 makes the one with the bits of 0. What is given is
# taken modulo 1023, and a 0 counts as not given, which is 1.
#
# Who it hurts: whoever numbers workers from 0, as a pod of a stateful set is numbered: the first two workers write
# each other's rows.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" snowflake-id@1.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { default: SnowflakeId } = require("snowflake-id");

Date.now = () => 1796000000000;
const ids = [0, 1, 2, 1022, 1023, 1024].map((mid) => BigInt(new SnowflakeId({ mid }).generate()));
console.log(`${ids.map((id) => (id >> 12n) & 1023n).join(" ")}, ${ids[0] === ids[1]}, ${ids[0] === ids[2]}`);
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "snowflake-id 1.1.0, machines in ids of 0, 1, 2, 1022, 1023 and 1024, are ids of 0 and 1 one, of 0 and 2: $seen"
[ "$seen" = "1 1 2 1022 0 1, true, false" ]
