# shellcheck shell=bash
# How the scripts talk. Sourced by every script here; expects bash.

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# A usage error: the message, and exit code 2.
misuse() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}
