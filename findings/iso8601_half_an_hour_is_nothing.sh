#!/usr/bin/env bash
# iso8601 0.6.6 (for Rust): what a duration has after the last part that is understood is dropped. PT0.5H is nothing,
# and P1DT1.5H one day.
#
# Guess: half an hour, or an error, as P0.5D is: the documentation of duration() has no fractions but of seconds.
# Seen: 0 and 86400 seconds. P2W3D is two weeks, "PT1H 30M" an hour, and the time 12:00+1 has no offset. Only the
# documentation of the parsers below says that what is left over is thrown away.
#
# Who it hurts: whoever reads time limits, leases and meter periods: one that is written otherwise than expected is
# shorter or none, with no error.
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
iso8601 = "=0.6.6"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use std::time::Duration;

fn main() {
    for text in ["PT0.5H", "P1DT1.5H", "P2W3D", "PT1H 30M", "PT90M"] {
        print!("{text} {}; ", Duration::from(iso8601::duration(text).unwrap()).as_secs());
    }
    print!("{} ", iso8601::duration("P0.5D").is_err());
    print!("{}", iso8601::datetime("2026-11-30T12:00+1").unwrap().time.tz_offset_hours);
}
PROGRAM
seen=$(cargo run --quiet)
echo "iso8601 0.6.6, seconds, whether P0.5D is an error, and the hours of the offset +1: $seen"
[ "$seen" = "PT0.5H 0; P1DT1.5H 86400; P2W3D 1209600; PT1H 30M 3600; PT90M 5400; true 0" ]
