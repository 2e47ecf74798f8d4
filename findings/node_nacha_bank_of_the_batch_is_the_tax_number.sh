#!/usr/bin/env bash
# @midlandsbank/node-nacha 0.4.0 (NACHA files for JavaScript): in place of the bank that sends, the header and the
# trailer of a batch name the first eight digits of the tax number of the sender.
#
# Guess: 08100003, the first eight digits of the routing number of the bank the file is for. The trace numbers of the
# entries begin with them, and NACHA wants both to be the same.
# Seen: 12345678, of the tax number 123456789. The trace number of the entry is 081000030000000.
#
# Who it hurts: whoever pays wages or suppliers with such files: the batch is of a bank that does not exist.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @midlandsbank/node-nacha@0.4.0
cat > "$work/seen.cjs" << 'PROGRAM'
const nacha = require("@midlandsbank/node-nacha");

const file = nacha
  .create({ from: { name: "Sender", fein: "123456789" }, for: { name: "Bank", routing: "081000032" } })
  .ccd({ effectiveDate: "261231", description: "Payment", note: "", date: "Dec 31" })
  .credit({ name: "Target", account: { num: "135792468", type: "C" }, routing: "081000210", amount: 12345 });
const lines = nacha.from(file).to("ach").split("\n");
const field = (type) => lines.find((line) => line.startsWith(type)).slice(79, 87);
console.log(field("5"), field("8"), field("6"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "node-nacha 0.4.0, bank of the batch in its header, its trailer and the entry's trace number: $seen"
[ "$seen" = "12345678 12345678 08100003" ]
