# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The processes that a scaling agent has started on this machine. Its state folder has for each
#
#   replicas/NAME/    files that mark its state, and its log
#
# Sourced, after say.sh, by a script that stops them when the agent is gone.

# The pids of processes whose file $1 in /proc contains $2.
processes_with() {
  local file
  # shellcheck disable=SC2013  # names of files in /proc have no blanks
  for file in $(grep -lzF -- "$2" /proc/[0-9]*/"$1" 2> /dev/null); do
    [[ $file == /proc/$$/* ]] || basename "$(dirname "$file")"
  done
}

# The pids of the keepers of the replicas in folder $1.
replica_keepers() {
  local pid program
  for pid in $(processes_with cmdline "$1/replicas/"); do
    { read -r -d '' program < "/proc/$pid/cmdline"; } 2> /dev/null || continue
    [ "${program##*/}" != muster-replica-keeper ] || echo "$pid"
  done
}

# The pids of keepers, processors and their handlers of folder $1.
replica_processes() { processes_with environ "MUSTER_DATA_DIR=$1/replicas/"; replica_keepers "$1"; }

# NAME, state and log of each living replica of folder $1.
replicas_list() {
  local folder state
  for folder in "$1"/replicas/*/; do
    if [ ! -f "$folder/record" ] || [ -e "$folder/end" ]; then continue; fi
    state=starting
    [ ! -e "$folder/ready" ] || state=ready
    [ ! -e "$folder/leaving" ] || state=leaving
    printf '%s %s %s\n' "$(basename "$folder")" "$state" "${folder}log"
  done
}

# Lets all replicas of folder $1 finish their current work, and waits until they have gone. Their
# agent must have ended: it would start others. Fails when a replica has not gone within $2 seconds.
replicas_stop() {
  local end=$((SECONDS + $2)) pid
  for pid in $(replica_keepers "$1"); do
    kill "$pid" 2> /dev/null || true  # it has ended by itself
  done
  while [ -n "$(replica_processes "$1")" ]; do
    [ "$SECONDS" -lt "$end" ] || fail "a replica does not end; their logs are in $1/replicas"
    sleep 0.1
  done
  # The next agent decides anew how many replicas it wants.
  rm -f -- "$1/orders"
}
