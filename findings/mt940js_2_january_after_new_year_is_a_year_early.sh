#!/usr/bin/env bash
# mt940js 1.3.5 (bank statements of MT940 for JavaScript): around New Year the entry date is a year off. A payment of
# 31 December 2026 that is booked on 2 January was booked on 2 January 2026.
#
# Guess: 2 January 2027. The entry date of a line has no year, and is to be near the value date: mt-940 for Python takes
# it so.
# Seen: 2 January 2026, 363 days before the value date. The other way round, a value date of 2 January 2027 and an entry
# on 31 December, it is 31 December 2027. The year is that of the value date.
#
# Who it hurts: whoever closes a year by it: the first bookings of January are in the year that is closed already, and
# the last ones of December in a year that is yet to come.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" mt940js@1.3.5
cat > "$work/seen.cjs" << 'PROGRAM'
const { Parser } = require("mt940js");

const statement = [
  ":20:START", ":25:BANK/1", ":28C:1/1", ":60F:C261230EUR100,00", ":61:2612310102D10,00NTRFREF1",
  ":61:2701021231D10,00NTRFREF2", ":61:2701020104D10,00NTRFREF3", ":62F:C270104EUR70,00", "-",
].join("\r\n");
const day = (date) => date.toISOString().slice(0, 10);
const [{ transactions }] = new Parser().parse(statement);
console.log(transactions.map(({ date, entryDate }) => `${day(date)} ${day(entryDate)}`).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "mt940js 1.3.5, value date and entry date: $seen"
[ "$seen" = "2026-12-31 2026-01-02, 2027-01-02 2027-12-31, 2027-01-02 2027-01-04" ]
