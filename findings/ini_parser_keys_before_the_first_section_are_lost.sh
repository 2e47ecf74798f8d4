#!/usr/bin/env bash
# ini-parser 0.0.2 (INI files for JavaScript): what stands before the first section is dropped. ini 6.0.0 has it.
#
# Guess: the keys beside the sections, as with ini, or an error.
# Seen: of a file with lease = 30 and then [log] with level = info only the section is there. Nothing tells of it.
#
# Who it hurts: whoever has general settings at the top, as many such files do: the defaults count in their place.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" ini-parser@0.0.2 ini@6.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const text = "lease = 30\n[log]\nlevel = info\n";
console.log(JSON.stringify(require("ini-parser").parse(text)), JSON.stringify(require("ini").parse(text)));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "ini-parser 0.0.2 and ini 6.0.0: $seen"
[ "$seen" = '{"log":{"level":"info"}} {"lease":"30","log":{"level":"info"}}' ]
