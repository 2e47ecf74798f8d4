#!/usr/bin/env bash
# prometheus-parse 0.2.5 (for Rust): a sample with a brace in the value of a label is left out. A value with an equals
# sign is no label, and one with a comma ends there.
#
# Guess: each sample of the page with its labels, for Prometheus's format takes any character in a value between quotes,
# and escapes only the quote, the backslash and the line feed.
# Seen: of path="/jobs/{id}" there is no sample. path="/jobs?state=done",code="200" has the code only, and
# path="/jobs/a,b" is "/jobs/a". There is no error.
#
# Who it hurts: agents that read pages of HTTP servers: their labels have routes with braces. Those are missing from all
# sums, and other series become one.
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
prometheus-parse = "=0.2.5"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
const PAGE: &str = r#"# TYPE requests_total counter
requests_total{path="/jobs",code="200"} 1
requests_total{path="/jobs/{id}",code="200"} 2
requests_total{path="/jobs?state=done",code="200"} 3
requests_total{path="/jobs/a,b",code="200"} 4
"#;

fn main() {
    let lines = PAGE.lines().map(|line| Ok(line.to_string()));
    for sample in prometheus_parse::Scrape::parse(lines).unwrap().samples {
        print!("{:?} {}; ", sample.value, sample.labels);
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "prometheus-parse 0.2.5: $seen"
[ "$seen" = 'Counter(1.0) code="200",path="/jobs"; Counter(3.0) code="200"; Counter(4.0) code="200",path="/jobs/a"; ' ]
