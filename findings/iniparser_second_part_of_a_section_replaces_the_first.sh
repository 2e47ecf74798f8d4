#!/usr/bin/env bash
# iniparser 1.0.5 (INI files for JavaScript): a section that goes on further down loses what it had. ini 6.0.0 adds.
#
# Guess: both keys, as ini has it, or an error, as Python's configparser has it.
# Seen: [queue] with lease = 30 and a second [queue] with retries = 5 have only retries. Nothing tells of it.
#
# Who it hurts: settings put together of several files, or to the end of which a tool adds its own part: those above are
# gone and the defaults count.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" iniparser@1.0.5 ini@6.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const text = "[queue]\nlease = 30\n[log]\nlevel = info\n[queue]\nretries = 5\n";
console.log(JSON.stringify(require("iniparser").parseString(text).queue));
console.log(JSON.stringify(require("ini").parse(text).queue));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "iniparser 1.0.5 and ini 6.0.0: $seen"
[ "$seen" = '{"retries":"5"}
{"lease":"30","retries":"5"}' ]
