#!/usr/bin/env bash
# kube_quantity 0.9.0 (quantities of Kubernetes for Rust): as whole bytes a quantity loses its fraction before its unit
# counts. 1.5Gi is 1Gi, and 0.5Gi is nothing.
#
# Guess: to_bytes_i64() has 1610612736 and 536870912, which to_bytes_f64() has.
# Seen: 1073741824 and 0. 2.5G is 2000000000, and to_bytes_i128() is the same. 1536Mi is right.
#
# Who it hurts: whoever adds up requests and limits for a quota, a report or a bill: fractions are free.
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
kube_quantity = "=0.9.0"
k8s-openapi = { version = "=0.29.0", default-features = false, features = ["earliest"] }

[profile.dev]
debug = false
TOML
cat > src/main.rs << 'PROGRAM'
use kube_quantity::ParsedQuantity;

fn main() {
    for text in ["1.5Gi", "0.5Gi", "2.5G", "1536Mi"] {
        let quantity = ParsedQuantity::try_from(text).unwrap();
        print!("{} {}; ", quantity.to_bytes_i64().unwrap(), quantity.to_bytes_f64().unwrap());
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "kube_quantity 0.9.0, to_bytes_i64() and to_bytes_f64() of 1.5Gi, 0.5Gi, 2.5G and 1536Mi: $seen"
[ "$seen" = "1073741824 1610612736; 0 536870912; 2000000000 2500000000; 1610612736 1610612736; " ]
