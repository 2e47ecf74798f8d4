#!/usr/bin/env bash
# bai2 0.4.0 (bank statements of BAI2 for Rust): an amount of zero is no amount, as a field that is empty. What is
# available at once, on day 0, is not there.
#
# Guess: a closing balance (015) of 0 is Some(0), and one that the bank leaves out is None. Of 900.00 that are available
# as 500.00 on day 0 and 400.00 on day 1, both are there.
# Seen: None for both, null in JSON, and of the availability day 1 alone. All zeros at the beginning are cut off before
# a number is read, also the only one.
#
# Who it hurts: treasuries that sweep accounts to zero every evening: their balance counts as not reported, and the
# funds that can be used today are missing from the sum.
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
bai2 = "=0.4.0"
serde_json = "1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
const STATEMENT: &str = "01,SENDER,RECEIVER,261130,0800,1,80,,2/
02,RECEIVER,SENDER,1,261130,0800,EUR,2/
03,0001,EUR,015,0,,,010,,,,040,001,,,045,90000,2,D,2,0,50000,1,40000/
49,90000,2/
98,90000,1,4/
99,90000,1,6/
";

fn main() {
    let file = bai2::Bai2File::new(STATEMENT.to_string()).unwrap();
    let file = serde_json::to_value(&file).unwrap();
    for amount in file["groups"][0]["accounts"][0]["amounts"].as_array().unwrap() {
        print!("{} {} {}, ", amount["amount_type"]["code"], amount["amount"], amount["availability"]);
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "bai2 0.4.0, amounts of 0, none, 001, and of 90000 on two days: $seen"
[ "$seen" = '"015" null {}, "010" null {}, "040" 1 {}, "045" 90000 {"1":40000}, ' ]
