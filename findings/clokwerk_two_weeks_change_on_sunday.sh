#!/usr/bin/env bash
# clokwerk 0.4.0 (a scheduler for Rust): a job of every two weeks begins in the other week when the process starts on a
# Sunday.
#
# Guess: the next run is the same Monday on all seven days of a week, for it depends on the calendar only: the
# documentation says that it is a multiple of two weeks since the era began.
# Seen: from Monday, 16 November 2026, to Saturday the next run is Monday the 23rd, and from Sunday, 22 November, it is
# the 30th. A week later it is 7 December to Saturday, and on Sunday the next day, 30 November.
#
# Who it hurts: whoever restarts a service on a Sunday: the run of the next day comes a week late, or one comes that was
# due a week later. Two processes with the same schedule run in different weeks.
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
clokwerk = { version = "=0.4.0", default-features = false }

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use chrono::{TimeZone, Utc};
use clokwerk::{NextTime, TimeUnits};

fn main() {
    for day in [16, 21, 22, 23, 28, 29] {
        let from = Utc.with_ymd_and_hms(2026, 11, day, 12, 0, 0).unwrap();
        print!("{} {}; ", from.format("%a %d"), 2.weeks().next(&from).format("%a %d %b"));
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "clokwerk 0.4.0, days and their next run: $seen"
[ "$seen" = "Mon 16 Mon 23 Nov; Sat 21 Mon 23 Nov; Sun 22 Mon 30 Nov; Mon 23 Mon 07 Dec; Sat 28 Mon 07 Dec; \
Sun 29 Mon 30 Nov; " ]
