#!/usr/bin/env bash
# iso8601-duration 0.2.0 (for Rust) counts in floats of 32 bits: P200DT1S is 200 days without the second, and P1DT0.001S
# a day without the millisecond.
#
# Guess: to_std() gives a std::time::Duration, which counts nanoseconds, of just the duration in the text.
# Seen: a float of 32 bits has seven digits. From 195 days on, odd seconds become even ones, and PT20000001S is
# 20000000 s. A tenth of a second is 100.000001 ms.
#
# Who it hurts: whoever takes ages, terms or times since 1970 from such a text: they are off by up to a second after
# half a year, by up to a minute after 50 years, and two that differ are equal.
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
iso8601-duration = "=0.2.0"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use iso8601_duration::Duration;

fn main() {
    for text in ["P190DT1S", "P200DT1S", "PT20000001S", "PT1767225601S", "P1DT0.001S", "PT0.1S"] {
        print!("{:?} ", text.parse::<Duration>().unwrap().to_std().unwrap());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "iso8601-duration 0.2.0: $seen"
[ "$seen" = "16416001s 17280000s 20000000s 1767225600s 86400s 100.000001ms " ]
