#!/usr/bin/env bash
# rust-ini 0.21.3 (INI files for Rust): a key without a value takes the lines that follow, up to the next sign of
# equality. A section that begins there is gone.
#
# Guess: a key without a value, as in the files of MySQL and with allow_no_value of Python, or an error.
# Seen: of [mysqld], skip-networking, [client] and port = 3306 there is one section, mysqld, with one key: its name is
# of three lines, "skip-networking", "[client]" and "port", and its value 3306. No error.
#
# Who it hurts: whoever reads a file that has switches: the next section is missing, and its first setting is of a name
# that nobody asks for.
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
rust-ini = "=0.21.3"

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
fn main() {
    let text = "[mysqld]\nskip-networking\n[client]\nport = 3306\n";
    for (section, properties) in ini::Ini::load_from_str(text).unwrap().iter() {
        print!("{:?} {:?}; ", section, properties.iter().collect::<Vec<_>>());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "rust-ini 0.21.3: $seen"
[ "$seen" = 'None []; Some("mysqld") [("skip-networking\n[client]\nport", "3306")]; ' ]
