#!/usr/bin/env bash
# currency_rs 1.3.1 (for Rust): cents() of a negative amount is 0. currency.js 2.0.4, which it is a port of, has the
# cents with their sign.
#
# Guess: -1.50 is -1 dollar and -50 cents, or 50: dollars() and cents() together are the amount.
# Seen: -1.50 has -1 dollar and 0 cents, and -0.75 has neither. 1.50 has 1 and 50. value() and format() are right.
#
# Who it hurts: whoever writes dollars and cents into columns of their own, or checks for cents: a refund of 1.50 is one
# of 1.00, and one of less than a dollar is nothing.
set -euo pipefail
command -v cargo > /dev/null || { echo "skipped: there is no cargo" && exit 77; }
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir src
npm install --silent currency.js@2.0.4
cat > Cargo.toml << 'TOML'
[package]
name = "seen"
version = "0.0.0"
edition = "2021"

[dependencies]
currency_rs = "=1.3.1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use currency_rs::Currency;

fn main() {
    for value in [1.5, -1.5, -0.75] {
        let amount = Currency::new_float(value, None);
        print!("{} {} {}; ", amount.format(), amount.dollars(), amount.cents());
    }
}
PROGRAM
cat > seen.cjs << 'PROGRAM'
const currency = require("currency.js");

console.log([1.5, -1.5, -0.75].map(currency).map((amount) => `${amount.dollars()} ${amount.cents()}`).join("; "));
PROGRAM
seen="$(cargo run --quiet)$(node seen.cjs)"
echo "currency_rs 1.3.1 and currency.js 2.0.4: $seen"
[ "$seen" = "\$1.50 1 50; -\$1.50 -1 0; -\$0.75 0 0; 1 50; -1 -50; 0 -75" ]
