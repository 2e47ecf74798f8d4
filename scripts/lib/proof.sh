# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The rows of docs/proof.md, and the mark of commits that passed the gate. Sourced, after say.sh.

proof_page=docs/proof.md

# add_proof_row STEP COUNTED RESULT: adds a row for HEAD in the place of the step's last one. The rows of
# a step end up in the order in which the steps were first seen.
add_proof_row() {
  local commit
  commit=$(git rev-parse --short=12 HEAD 2> /dev/null) || commit=unknown
  [ -z "$(git status --porcelain --untracked-files=no -- . ":!$proof_page" 2> /dev/null)" ] || commit+=" and changes"
  mkdir -p build
  flock build/proof.lock \
    python3 scripts/lib/proof_page.py "$proof_page" "$1" "$commit" "$(date -u +%F)" "$2" "$3"
}

# Prints the file that names the commits that passed .ci/run on this machine, one a line: commit, date.
green_file() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/muster/green"; }

# mark_green COMMIT
mark_green() {
  local file
  file=$(green_file)
  mkdir -p "$(dirname "$file")" && echo "$1 $(date -u +%FT%TZ)" >> "$file"
}

# is_green COMMIT
is_green() { grep -qs "^$1 " "$(green_file)"; }
