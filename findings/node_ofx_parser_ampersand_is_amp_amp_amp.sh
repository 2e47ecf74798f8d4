#!/usr/bin/env bash
# node-ofx-parser 0.5.1 (bank statements in OFX for JavaScript): an ampersand of a text is escaped twice more instead of
# being read. SMITH &amp; SONS of the file is SMITH &amp;amp;amp; SONS for the program.
#
# Guess: SMITH & SONS, as OFX has &amp;, &lt; and &gt; for these characters.
# Seen: SMITH &amp;amp;amp; SONS, and a bare ampersand, which banks write too, becomes &amp;amp;. 5 &lt; 6 has &amp;amp;lt;. What
# serialize() makes of the parsed file still has it.
#
# Who it hurts: whoever matches payments by the name of the payer or shows statements: no name with an ampersand is
# found.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" node-ofx-parser@0.5.1
cat > "$work/seen.cjs" << 'PROGRAM'
const ofx = require("node-ofx-parser");

const file = `OFXHEADER:100
DATA:OFXSGML
VERSION:102

<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><BANKTRANLIST><STMTTRN>
<TRNTYPE>CREDIT
<TRNAMT>10.00
<NAME>NAME OF PAYER
</STMTTRN></BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
`;
const nameIn = (text) => ofx.parse(text).OFX.BANKMSGSRSV1.STMTTRNRS.STMTRS.BANKTRANLIST.STMTTRN.NAME;
const names = ["SMITH SONS", "SMITH &amp; SONS", "SMITH & SONS", "5 &lt; 6"];
console.log(names.map((name) => nameIn(file.replace("NAME OF PAYER", name))).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "node-ofx-parser 0.5.1, SMITH SONS, SMITH &amp; SONS, SMITH & SONS and 5 &lt; 6: $seen"
[ "$seen" = "SMITH SONS, SMITH &amp;amp;amp; SONS, SMITH &amp;amp; SONS, 5 &amp;amp;lt; 6" ]
