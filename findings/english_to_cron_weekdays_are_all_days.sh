#!/usr/bin/env bash
# english-to-cron 0.1.7 (for Rust): "every weekday at 9 am" is every day, Saturday and Sunday among them.
#
# Guess: MON-FRI, or an error.
# Seen: it finds the "day" in "weekday". What it does not know it leaves out: "every other day" is every day, "first
# monday of the month" every Monday, and "every two hours" every hour. "monday to friday" and "every 2 hours" are right.
#
# Who it hurts: whoever lets users say when a job runs: what is for working days runs on all of them.
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
english-to-cron = "=0.1.7"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
fn main() {
    for text in [
        "every weekday at 9 am",
        "every other day at 9 am",
        "first monday of the month at 9 am",
        "every two hours",
        "monday to friday at 9 am",
        "every 2 hours",
    ] {
        print!("{}; ", english_to_cron::str_cron_syntax(text).unwrap());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "english-to-cron 0.1.7: $seen"
[ "$seen" = "0 0 9 */1 * ? *; 0 0 9 */1 * ? *; 0 0 9 ? * MON *; 0 0 * * * ? *; 0 0 9 ? * MON-FRI *; 0 0 0/2 * * ? *; " ]
