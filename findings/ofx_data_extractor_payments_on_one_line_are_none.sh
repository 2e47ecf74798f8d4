#!/usr/bin/env bash
# ofx-data-extractor 1.5.0 (OFX statements for JavaScript): in a statement without line feeds getTransactionsSummary()
# finds no payment, and says so without an error.
#
# Guess: the same as with line feeds: OFX 1 is SGML, and the next tag ends a value. Banks write it on one line, too.
# Seen: credit 0 and debit 0, of 0 and 0 payments. With each tag on a line of its own, and all else the same, it is 7.5
# and 2.5. toJson() throws a SyntaxError.
#
# Who it hurts: whoever adds up what came in: a month with payments is a month without any.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" ofx-data-extractor@1.5.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { Ofx } = require("ofx-data-extractor");

const header = ["OFXHEADER:100", "DATA:OFXSGML", "VERSION:102", "SECURITY:NONE", "ENCODING:USASCII", "CHARSET:1252",
  "COMPRESSION:NONE", "OLDFILEUID:NONE", "NEWFILEUID:NONE", "", ""].join("\n");
const payment = (type, amount, id) => ["<STMTTRN>", `<TRNTYPE>${type}`, "<DTPOSTED>20260331", `<TRNAMT>${amount}`,
  `<FITID>${id}`, "<NAME>Shop", "</STMTTRN>"];
const tags = ["<OFX>", "<BANKMSGSRSV1>", "<STMTTRNRS>", "<TRNUID>1", "<STATUS>", "<CODE>0", "<SEVERITY>INFO",
  "</STATUS>", "<STMTRS>", "<CURDEF>EUR", "<BANKACCTFROM>", "<BANKID>1", "<ACCTID>2", "<ACCTTYPE>CHECKING",
  "</BANKACCTFROM>", "<BANKTRANLIST>", "<DTSTART>20260301", "<DTEND>20260331", ...payment("CREDIT", "7.50", 1),
  ...payment("DEBIT", "-2.50", 2), "</BANKTRANLIST>", "<LEDGERBAL>", "<BALAMT>5.00", "<DTASOF>20260331",
  "</LEDGERBAL>", "</STMTRS>", "</STMTTRNRS>", "</BANKMSGSRSV1>", "</OFX>"];
const seen = ["\n", ""].map((between) => {
  const { credit, debit } = new Ofx(header + tags.join(between)).getTransactionsSummary();
  return `credit ${credit} debit ${debit}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "ofx-data-extractor 1.5.0, tags on lines of their own and on one line: $seen"
[ "$seen" = "credit 7.5 debit 2.5, credit 0 debit 0" ]
