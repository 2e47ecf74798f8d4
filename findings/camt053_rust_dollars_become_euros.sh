#!/usr/bin/env bash
# camt053 0.4.2 (bank statements of ISO 20022 for Rust): a statement in dollars becomes one in euros when it is
# converted to MT940.
#
# Guess: ":60F:C261101USD1000,00", for the statement that it has read has the currency USD.
# Seen: ":60F:C261101EUR1000,00" and ":62F:C261130EUR900,00", with the field currency of the same struct at USD. The
# documentation names no currency, and nothing is said. As XML the same statement keeps its dollars.
#
# Who it hurts: companies with accounts in other currencies whose bookkeeping reads MT940: dollars, francs and yen are
# booked as euros.
set -euo pipefail
command -v cargo > /dev/null || { echo "skipped: there is no cargo" && exit 77; }
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir src
cat > Cargo.toml << 'TOML'
[package]
name = "seen"
version = "0.0.0"
edition = "2021"

[dependencies]
camt053 = { version = "=0.4.2", default-features = false }

[profile.dev]
debug = false
TOML
cat > src/statement.xml << 'XML'
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02">
  <BkToCstmrStmt>
    <GrpHdr><MsgId>1</MsgId><CreDtTm>2026-12-01T06:00:00</CreDtTm></GrpHdr>
    <Stmt>
      <Id>1</Id>
      <CreDtTm>2026-12-01T06:00:00</CreDtTm>
      <Acct><Id><IBAN>NL00TEST0000000000</IBAN></Id><Ccy>USD</Ccy></Acct>
      <Bal>
        <Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">1000.00</Amt>
        <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-01</Dt></Dt>
      </Bal>
      <Bal>
        <Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">900.00</Amt>
        <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-30</Dt></Dt>
      </Bal>
      <Ntry>
        <Amt Ccy="USD">100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>
        <BookgDt><Dt>2026-11-05</Dt></BookgDt><ValDt><Dt>2026-11-05</Dt></ValDt>
        <NtryDtls><TxDtls><RmtInf><Ustrd>Invoice 1</Ustrd></RmtInf></TxDtls></NtryDtls>
      </Ntry>
    </Stmt>
  </BkToCstmrStmt>
</Document>
XML
cat > src/main.rs << 'PROGRAM'
fn main() {
    let statements = camt053::SimpleStatements::from_reader(&include_bytes!("statement.xml")[..]).unwrap();
    let statement = &statements.statements[0];
    print!("{}", statement.currency.as_deref().unwrap());
    for line in statement.to_mt940().lines().filter(|line| line.starts_with(":6")) {
        print!(" {line}");
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "camt053 0.4.2, the currency of the statement and its amounts in MT940: $seen"
[ "$seen" = "USD :60F:C261101EUR1000,00 :61:2611051105D100,00NDIV :62F:C261130EUR900,00" ]
