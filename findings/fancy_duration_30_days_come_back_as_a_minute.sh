#!/usr/bin/env bash
# fancy-duration 0.9.2 (durations in texts for Rust): months and minutes are both "m". 30 days are written as "1m" and
# read back as a minute.
#
# Guess: what is written is read back as the same duration: 30 days. The documentation says that months must come before
# minutes, and both are to be told by their order.
# Seen: a minute. 60 and 90 days are two and three minutes. With days, hours or another "m" behind it, as in "1m 1d", it
# is right, and so is a year.
#
# Who it hurts: whoever keeps durations in files, as with its support for serde: what is to be kept for a month or is
# valid for it ends after a minute, and 31 days work.
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
fancy-duration = "=0.9.2"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use fancy_duration::FancyDuration;
use std::time::Duration;

fn main() {
    for days in [30, 60, 90, 31, 360] {
        let text = FancyDuration(Duration::from_secs(days * 86400)).to_string();
        let back = FancyDuration::<Duration>::parse(&text).unwrap().duration();
        print!("{days} {text} {}; ", back.as_secs());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "fancy-duration 0.9.2, days, their text and the seconds read back: $seen"
[ "$seen" = "30 1m 60; 60 2m 120; 90 3m 180; 31 1m 1d 2678400; 360 1y 31104000; " ]
