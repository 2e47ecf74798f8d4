#!/usr/bin/env bash
# kube_quantity 0.9.0 (quantities of Kubernetes for Rust): a sum of quantities of different units has seven right
# digits. 0 and 10Gi are 10737420000, which is 1760 bytes too many.
#
# Guess: 10737418240. Its numbers are of rust_decimal, which has 28 digits.
# Seen: the factor between the units is a float of 32 bits, and its digits after the seventh are dropped. 1 and 1Ki are
# 1025.0001. Of Ki and m the result has no unit: 1Ki and 500m are 1049088.00005, 1024 times what they are.
#
# Who it hurts: whoever adds up memory from 0 on: the sum fits no other number, and equal amounts differ.
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
    for (left, right) in [("0", "10Gi"), ("1", "1Ki"), ("1Ki", "500m"), ("10Gi", "10Gi")] {
        let [left, right] = [left, right].map(|text| ParsedQuantity::try_from(text).unwrap());
        print!("{}; ", left + right);
    }
}
PROGRAM
seen=$(cargo run --quiet)
echo "kube_quantity 0.9.0, 0 + 10Gi, 1 + 1Ki, 1Ki + 500m and 10Gi + 10Gi: $seen"
[ "$seen" = "10737420000; 1025.0001; 1049088.00005; 20Gi; " ]
