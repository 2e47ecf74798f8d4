#!/usr/bin/env bash
# exponential-backoff 2.1.1 (for Rust): jitter spreads only half of the first waits. The others are the least wait to
# the nanosecond, and from where the most is reached, waits are that to the nanosecond.
#
# Guess: with its jitter of 0.3, no more than a few of 1000 first waits of 100 ms are the same.
# Seen: about 500 are 100 ms. Of fourth waits (800 ms, the most here) about 500 are 800 ms, and all fifth waits are.
# Waits are held between least and most after jitter was added. Second and third waits are spread.
#
# Who it hurts: whoever has many clients try again after an outage: half of them come at once, and later, when the
# outage is long, all of them, which is what jitter is meant to prevent.
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
exponential-backoff = "=2.1.1"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use exponential_backoff::Backoff;
use std::time::Duration;

fn main() {
    let (least, most) = (Duration::from_millis(100), Duration::from_millis(800));
    let mut same = [0; 5];
    for _ in 0..1000 {
        for (index, wait) in Backoff::new(6, least, most).into_iter().flatten().enumerate() {
            same[index] += i32::from(wait == least || wait == most);
        }
    }
    // Waits are drawn at random: of 1000 that are the same by half, 350 to 650 are sure to be.
    let how_many = |count| match count {
        0..50 => "few",
        350..650 => "half",
        1000 => "all",
        _ => "other",
    };
    println!("{}", same.map(how_many).join(" "));
}
PROGRAM
seen=$(cargo run --quiet)
echo "exponential-backoff 2.1.1, how many of 1000 first to fifth waits are the least or most: $seen"
[ "$seen" = "half few few half all" ]
