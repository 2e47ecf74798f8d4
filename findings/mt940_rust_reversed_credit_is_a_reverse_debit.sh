#!/usr/bin/env bash
# mt940 1.1.1 (bank statements of MT940 for Rust): the marks of reversals are the other way round. RC, the reversal of a
# credit, is ReverseDebit, and RD is ReverseCredit.
#
# Guess: RC is ReverseCredit, for C is Credit: money that came goes away again.
# Seen: lines of C, RC, D and RD are Credit, ReverseDebit, Debit and ReverseCredit, as if the names told which way the
# money goes. The documentation says only that there are reverse variants.
#
# Who it hurts: bookkeeping that goes by the names: a payment that bounced counts twice, and so does a fee that the bank
# has given back.
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
mt940 = "=1.1.1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
const STATEMENT: &str = ":20:1\r
:25:DE00/1\r
:28C:1/1\r
:60F:C261101EUR100,00\r
:61:2611021102C10,00NTRFNONREF\r
:61:2611031103RC10,00NTRFNONREF\r
:61:2611041104D5,00NTRFNONREF\r
:61:2611051105RD5,00NTRFNONREF\r
:62F:C261105EUR100,00\r
\r
";

fn main() {
    for line in &mt940::parse_mt940(STATEMENT).unwrap()[0].statement_lines {
        print!("{:?} {}; ", line.ext_debit_credit_indicator, line.amount);
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "mt940 1.1.1: $seen"
[ "$seen" = "Credit 10.00; ReverseDebit 10.00; Debit 5.00; ReverseCredit 5.00; " ]
