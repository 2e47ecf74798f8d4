#!/usr/bin/env bash
# day_count_conventions 0.1.8 (interest periods for Rust): 30E/360 (ISDA) from 31 January to 31 March has 61 days. A
# period that ends on a 31st has one more than the convention.
#
# Guess: 60 days, and 75 from 15 January. Its documentation has the rule: if the second day is 31, then change it to 30.
# Seen: 61, and 76. The change is made for the last day of February only, when its day is 31, too, which never is. Its
# 30E/360 without ISDA has 60 and 75, and from July to August 30 instead of 31.
#
# Who it hurts: interest of loans, bonds and swaps in euros with quarters that end in March and December: a 360th of the
# year's interest too much for each.
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
chrono = { version = "=0.4.45", default-features = false }
day_count_conventions = "=0.1.8"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use chrono::NaiveDate;
use day_count_conventions::{DayCounter, ThirtyE360, ThirtyE360ISDA};

fn day(month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, month, day).unwrap()
}

fn main() {
    let isda = ThirtyE360ISDA::new(NaiveDate::from_ymd_opt(2036, 1, 31).unwrap());
    for (start, end) in [
        (day(1, 31), day(3, 31)),
        (day(1, 15), day(3, 31)),
        (day(7, 31), day(8, 31)),
        (day(3, 31), day(6, 30)),
    ] {
        let days = isda.day_count_fraction(&start, &end).get_fraction() * 360.0;
        let plain = ThirtyE360.day_count_fraction(&start, &end).get_fraction() * 360.0;
        print!("{days:.0} {plain:.0}, ");
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "day_count_conventions 0.1.8, days of 30E/360 with and without ISDA: $seen"
[ "$seen" = "61 60, 76 75, 31 30, 90 90, " ]
