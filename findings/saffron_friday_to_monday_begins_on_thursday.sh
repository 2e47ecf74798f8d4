#!/usr/bin/env bash
# saffron 0.1.0 (cron expressions for Rust, by Cloudflare): a range that goes over the end begins one too early. FRI-MON
# begins on Thursday, and the hours 22-2 begin at 21:00.
#
# Guess: Friday, Saturday, Sunday and Monday: describe() has "Friday through Monday" and "between 10:00 PM and 2:59 AM".
# Seen: five days, Thursday to Monday, and the hours 21, 22, 23, 0, 1 and 2. NOV-FEB begins in October, and the minutes
# 58-1 at 57. A range that does not go over the end, such as THU-SAT, is right.
#
# Who it hurts: whoever keeps heavy work for nights or weekends: it begins an hour or a day early, while people work.
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
chrono = "=0.4.45"
saffron = "=0.1.0"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use chrono::{TimeZone, Utc};

fn runs(expression: &str, count: usize, format: &str) {
    let cron: saffron::Cron = expression.parse().unwrap();
    for run in cron.iter_after(Utc.with_ymd_and_hms(2026, 3, 3, 12, 30, 0).unwrap()).take(count) {
        print!("{} ", run.format(format));
    }
}

fn main() {
    runs("0 10 * * FRI-MON", 5, "%a");
    runs("0 22-2 * * *", 6, "%H");
    runs("0 10 1 NOV-FEB *", 5, "%b");
    runs("58-1 * * * *", 5, "%M");
    runs("0 10 * * THU-SAT", 3, "%a");
}
PROGRAM
seen=$(cargo run --quiet)
echo "saffron 0.1.0, runs of FRI-MON, 22-2, NOV-FEB, 58-1 and THU-SAT: $seen"
[ "$seen" = "Thu Fri Sat Sun Mon 21 22 23 00 01 02 Oct Nov Dec Jan Feb 57 58 59 00 01 Thu Fri Sat " ]
