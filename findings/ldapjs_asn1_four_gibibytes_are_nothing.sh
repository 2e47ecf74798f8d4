#!/usr/bin/env bash
# @ldapjs/asn1 2.0.0 (BER of ASN.1 for JavaScript): a whole number of more than 31 bits is cut to 32. 4294967296 is
# written as 0, and the five bytes of 4294967295 are read as -1.
#
# Guess: 4294967296 and 4294967295: JavaScript's numbers hold them, and BER has whole numbers of any length. Or an
# error: the package asn1, which has the same functions, refuses to read more than four bytes.
# Seen: 2147483648 is written and read as -2147483648, 4294967295 as -1 and 5000000000 as 705032704.
#
# Who it hurts: readers and writers of usage records: volumes in bytes and amounts in micro-units beyond two billion are
# negative or small, and four gibibytes are free.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @ldapjs/asn1@2.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { BerReader, BerWriter } = require("@ldapjs/asn1");

const written = [2147483647, 2147483648, 4294967296, 5000000000].map((number) => {
  const writer = new BerWriter();
  writer.writeInt(number);
  return new BerReader(writer.buffer).readInt();
});
const read = ["02047fffffff", "02050080000000", "020500ffffffff"].map((bytes) =>
  new BerReader(Buffer.from(bytes, "hex")).readInt());
console.log(`${written.join(" ")}, ${read.join(" ")}`);
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "@ldapjs/asn1 2.0.0, 2147483647, 2147483648, 4294967296 and 5000000000 written, the bytes of three read: $seen"
[ "$seen" = "2147483647 -2147483648 0 705032704, 2147483647 -2147483648 -1" ]
