#!/usr/bin/env bash
# pretty-duration 0.1.1 (durations in words for Rust): a year of 365 days is 11 months and 109 days.
#
# Guess: 1 year, or 11 months and 30 days, as 11 of its months have 335 days.
# Seen: 11mon 109d. Months and days are not what is left but the whole duration once more, and both are cut to eight
# bits: 40 days are 1mon 40d, 256 days are 8 months and no days, and two years 1y 23mon 218d. An example of the
# documentation has "1 year 16 months 248 days". Up to a month it is right.
#
# Who it hurts: whoever shows people the age of a job, a lease or a certificate: none above a month is right.
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
pretty-duration = "=0.1.1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use std::time::Duration;

fn main() {
    for days in [30, 40, 256, 365, 730] {
        print!("{}; ", pretty_duration::pretty_duration(&Duration::from_secs(days * 86400), None));
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "pretty-duration 0.1.1, 30, 40, 256, 365 and 730 days: $seen"
[ "$seen" = "30d; 1mon 40d; 8mon; 11mon 109d; 1y 23mon 218d; " ]
