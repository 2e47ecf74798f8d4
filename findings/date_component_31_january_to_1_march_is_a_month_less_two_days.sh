#!/usr/bin/env bash
# date_component 0.4.8 (the time between two dates in parts, for Rust): from 31 January to 1 March there are a month and
# -2 days.
#
# Guess: a month and a day (28 February and a day), or 29 days. The parts are not negative: the field invert tells which
# date is the later one.
# Seen: month 1, day -2 and modulo_days -2, with invert false. From 30 January it is a month and -1 day, from 31 October
# 4 months and -2 days, and from 28 January, as one would expect, a month and a day.
#
# Who it hurts: whoever bills a month and so many days: two days are paid back, and a count of days below nothing is
# often taken for an error.
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
date_component = "=0.4.8"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use chrono::{TimeZone, Utc};
use date_component::date_component::calculate;

fn main() {
    let midnight = |(year, month, day)| Utc.with_ymd_and_hms(year, month, day, 0, 0, 0).unwrap();
    for from in [(2026, 1, 31), (2026, 1, 30), (2025, 10, 31), (2026, 1, 28)] {
        let between = calculate(&midnight(from), &midnight((2026, 3, 1)));
        print!("{} months {} days {}; ", between.month, between.day, between.invert);
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "date_component 0.4.8, from 31 and 30 January, 31 October and 28 January to 1 March: $seen"
[ "$seen" = "1 months -2 days false; 1 months -1 days false; 4 months -2 days false; 1 months 1 days false; " ]
