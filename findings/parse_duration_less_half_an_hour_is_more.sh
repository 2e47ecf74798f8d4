#!/usr/bin/env bash
# parse_duration 2.1.1 (for Rust): of a negative number only the part before the point is negative. A day less half an
# hour is half an hour more than a day.
#
# Guess: "1 day -1.5 hours" is 22.5 hours, for the documentation allows negative numbers and fractions, and has 23 hours
# for "1 day -1 hour".
# Seen: it is 23.5 hours, and "1 day -0.5 hours" is 24.5. "1 day -90 minutes" is 22.5 hours.
#
# Who it hurts: settings such as "1 day -0.5 hours", a term less the time to renew it: the result is plausible, and
# longer than what was asked for.
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
parse_duration = "=2.1.1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
fn main() {
    for text in ["1 day -1 hour", "1 day -1.5 hours", "1 day -0.5 hours", "1 day -90 minutes"] {
        print!("{:?} ", parse_duration::parse(text).unwrap().as_secs_f64());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "parse_duration 2.1.1: $seen"
[ "$seen" = "82800.0 84600.0 88200.0 81000.0 " ]
