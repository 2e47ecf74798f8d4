#!/usr/bin/env bash
# iso8601-duration 0.2.0 (for Rust) with chrono: two months from 1 January are 62 days, until 4 March. A year from
# 1 March 2024 ends on 2 March.
#
# Guess: 1 March, for the documentation wants a date to begin with because months and years differ.
# Seen: every month is as long as the first one, and every year as the one of the beginning: P12M from 1 January 2026
# ends on 8 January 2027, and P1Y from 1 March 2023 on 29 February. chrono's own Months has all of them right.
#
# Who it hurts: terms and retention, and schedules of every two months: each step is up to three days late, and the
# next one begins there.
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
iso8601-duration = { version = "=0.2.0", features = ["chrono"] }

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use chrono::{DateTime, Months, Utc};
use iso8601_duration::Duration;

fn main() {
    for (start, text, months) in [
        ("2026-01-01", "P1M", 1),
        ("2026-01-01", "P2M", 2),
        ("2026-01-01", "P12M", 12),
        ("2024-03-01", "P1Y", 12),
        ("2023-03-01", "P1Y", 12),
    ] {
        let start: DateTime<Utc> = format!("{start}T00:00:00Z").parse().unwrap();
        let duration: Duration = text.parse().unwrap();
        print!("{} {}; ", (start + duration).date_naive(), (start + Months::new(months)).date_naive());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "iso8601-duration 0.2.0 and chrono 0.4.45: $seen"
[ "$seen" = "2026-02-01 2026-02-01; 2026-03-04 2026-03-01; 2027-01-08 2027-01-01; 2025-03-02 2025-03-01; \
2024-02-29 2024-03-01; " ]
