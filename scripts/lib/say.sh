# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The scripts' output and usage errors. Sourced by every script here; expects bash.

say() { printf '\n== %s\n' "$*"; }

# Runs a command that may take long and prints nothing; every ten seconds, says that it still runs.
with_signs_of_life() {
  local command began=$SECONDS
  "$@" &
  command=$!
  while sleep 1 && kill -0 "$command" 2> /dev/null; do
    [ $(((SECONDS - began) % 10)) -ne 0 ] || printf '   … %d s\n' $((SECONDS - began))
  done
  wait "$command"
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# A usage error: the message, and exit code 2.
misuse() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

# A usage error unless the option $2 has a value, which $1 describes; "$@" of the script follows.
needs() { [ -n "${3:-}" ] || misuse "$2 needs $1"; }

# Prints the comment at the script's head, which its licence precedes. $0 is relative to the folder in which the
# script was called.
show_help() { (cd "$OLDPWD" && sed -n '4,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"); }
