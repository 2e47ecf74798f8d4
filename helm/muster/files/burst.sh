#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# What the pod of `helm test` runs: a burst from zero through the whole mesh. Its totals must be exact and its
# receipt must say so, it must keep the promises of the values, and the processors must go again. Ends with a
# table; with 1 and a line for each bound that was missed. The batch with its input, and the job, are deleted.
#
#   MUSTER_SERVER   HOST:PORT of an initiator
#   JOB             the job's name; /test/job.yaml defines it, with items of ITEM_ROWS transactions
#   ROWS            how many transactions there are
#   SLA_SECONDS     from the submit until the batch is complete
#   P95_SECONDS     from the submit until 95 % of the items are counted
#   POOLS           those of the job that go to zero, with blanks between; none: no pool does
#   ZERO_SECONDS    how long they may take to get there
set -eu

folder=$(mktemp -d)
batch=
missed=

milliseconds() { date +%s%3N; }
since() { echo $(($(milliseconds) - $1)); }
seconds() { awk -v ms="$1" 'BEGIN { printf "%.1f s", ms / 1000 }'; }

# The member $1 of the JSON object in the file $2.
field() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' "$2" | head -n 1; }

miss() {
  missed="${missed}FAILED: $1
"
}
fail() {
  miss "$1"
  exit 1
}

# A line of the table: what, its figure, its bound, and whether that holds.
row() { printf '%-30s %-22s %-22s %s\n' "$@" >> "$folder/table"; }
# WHAT MILLISECONDS SECONDS: the last are the bound.
judge() {
  if [ "$2" -le $(($3 * 1000)) ]; then
    row "$1" "$(seconds "$2")" "$3 s" kept
  else
    row "$1" "$(seconds "$2")" "$3 s" MISSED
    miss "$1: $(seconds "$2"), and $3 s are promised"
  fi
}

# Runs a command of the clean-up, whose trouble is told as $1.
undo() {
  what=$1
  shift
  "$@" > "$folder/said" 2>&1 || miss "$what: $(cat "$folder/said")"
}
remove_batch() {
  muster batch delete "$batch" 2> /dev/null && return
  muster batch cancel "$batch" --reason "helm test has ended" && muster batch delete "$batch"
}
# A job that was there before becomes what it was.
clean_up() {
  status=$?
  trap - EXIT TERM INT
  [ -z "$batch" ] || undo "batch $batch is not deleted" remove_batch
  if [ -s "$folder/before.yaml" ]; then
    undo "job $JOB is not as it was before" muster job apply "$folder/before.yaml"
  elif [ -e "$folder/applied" ]; then
    undo "job $JOB is not deleted" muster job delete "$JOB"
  fi
  [ ! -e "$folder/table" ] || cat "$folder/table"
  rm -rf "$folder"
  printf '%s' "$missed"
  [ -z "$missed" ] || status=1
  [ "$status" -ne 0 ] || echo "passed: batch $batch: $ROWS transactions, exact, within $SLA_SECONDS s"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 1' TERM INT

# The input, and its sums in whole thousandths, which muster has no part in.
make_input() {
  awk -v rows="$ROWS" -v sums="$folder/expected" 'BEGIN {
    split("France Ghana Norway", countries)
    print "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"
    for (i = 0; i < rows; ++i) {
      country = countries[i % 3 + 1]; units = i % 7 + 1; cents = i % 90 + 10
      printf "%d,S,thing,%d,2026-0%d-01 08:00:00,0.%d,%d,%s\n", i, units, i % 2 + 1, cents, i % 50, country
      key = country ",2026-0" (i % 2 + 1)
      revenue[key] += units * cents * 10; sum[key] += units; count[key]++
    }
    for (key in revenue)
      printf "%s,%d.%03d,%d,%d\n", key, int(revenue[key] / 1000), revenue[key] % 1000, sum[key], count[key] > sums
  }' > "$folder/burst.csv"
  sort -o "$folder/expected" "$folder/expected"
}

# How many processors the pools have, as the agent counts them: those that start or end, too.
processors() {
  for pool in $POOLS; do
    muster scale status "$pool" -o json > "$folder/pool.json" || echo '"replicas": {"unknown": 1}' > "$folder/pool.json"
    tr -d '\n' < "$folder/pool.json" | sed 's/.*"replicas": *{\([^}]*\)}.*/\1/' | tr ',' '\n'
    echo
  done | awk -F: '!/tasks/ { count += $2 } END { print count }'
}
# Fails when the pools are not at zero in time.
await_zero() {
  end=$(($(milliseconds) + ZERO_SECONDS * 1000))
  until left=$(processors) && [ "$left" = 0 ]; do
    [ "$(milliseconds)" -lt "$end" ] || return 1
    sleep 0.5
  done
}

apply_job() {
  muster job get "$JOB" > "$folder/before.yaml" 2> /dev/null || rm "$folder/before.yaml"
  muster job apply /test/job.yaml
  touch "$folder/applied"
}

# Waits until the batch is complete, and notes when 95 % of its items were.
follow() {
  items=$(((ROWS + ITEM_ROWS - 1) / ITEM_ROWS))
  most=$(((items * 95 + 99) / 100))
  p95=
  end=$((begun + (SLA_SECONDS + 30) * 1000))
  while :; do
    if muster batch get "$batch" -o json > "$folder/batch.json"; then
      # The count is null while the controller is not reached.
      if [ -z "$p95" ] && [ "$(field items_counted "$folder/batch.json")" -ge "$most" ] 2> /dev/null; then
        p95=$(since "$begun")
      fi
      case $(field state "$folder/batch.json") in
        complete) break ;;
        cancelled) fail "batch $batch was cancelled" ;;
      esac
    fi
    [ "$(milliseconds)" -lt "$end" ] ||
      fail "not complete 30 s after the promised $SLA_SECONDS s: $(cat "$folder/batch.json")"
    sleep 0.2
  done
  complete=$(since "$begun")
}

check_totals() {
  for count in "aggregated $ROWS" "rejected 0" "dead_lettered 0"; do
    counted=$(field "${count% *}" "$folder/batch.json")
    [ "$counted" = "${count#* }" ] || miss "batch $batch: ${count% *} is $counted, and not ${count#* }"
  done
  muster report "$batch" --group by_country_month -o csv | grep '2026-' | sort > "$folder/actual"
  if cmp -s "$folder/expected" "$folder/actual"; then
    row transactions "$ROWS" "exact sums" kept
  else
    row transactions "$ROWS" "exact sums" MISSED
    miss "the totals of batch $batch differ; expected:
$(cat "$folder/expected")
reported:
$(cat "$folder/actual")"
  fi
}

# The receipt comes a moment after the batch is complete. Its last line is the checksum of the others.
check_receipt() {
  tries=50
  until muster batch receipt "$batch" > "$folder/receipt" 2> "$folder/said"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "batch $batch has no receipt: $(cat "$folder/said")"
    sleep 0.2
  done
  proven=kept
  checksum=$(sed '$d' "$folder/receipt" | sha256sum | cut -d ' ' -f 1)
  for line in "batch $batch" "job $JOB" "items $items" "transactions $ROWS" "aggregated $ROWS" "rejected 0" \
    "dead_lettered 0" "items_dead 0" "conflicts 0" "checksum $checksum"; do
    grep -qxF "$line" "$folder/receipt" || { proven=MISSED && miss "the receipt of batch $batch lacks '$line':
$(cat "$folder/receipt")"; }
  done
  row receipt "$(echo "$checksum" | cut -c 1-12)" "its sums and checksum" "$proven"
}

make_input
apply_job
row "" FIGURE PROMISED ""
if [ -n "$POOLS" ]; then
  await_zero || fail "$left processors of $POOLS are still there after $ZERO_SECONDS s, so nothing begins from zero: other work \
keeps them, or the agent does not let them go"
  row "processors before" 0 0 kept
fi
begun=$(milliseconds)
muster batch submit "$JOB" --input "$folder/burst.csv" --new --quiet -o json > "$folder/batch.json" ||
  fail "submit ended with $?"
batch=$(field batch "$folder/batch.json")
follow
ended=$(milliseconds)
check_totals
check_receipt
judge "complete" "$complete" "$SLA_SECONDS"
judge "p95 of item latency" "${p95:-$complete}" "$P95_SECONDS"
late_by=$(field late_by_seconds "$folder/batch.json")
case $late_by in
  0 | 0.0) ;;
  *) miss "batch $batch is $late_by s late, says muster" ;;
esac
if [ -n "$POOLS" ]; then
  if await_zero; then
    judge "back to zero" "$(since "$ended")" "$ZERO_SECONDS"
  else
    row "back to zero" "$left processors" "$ZERO_SECONDS s" MISSED
    miss "back to zero: $left processors of $POOLS are still there $ZERO_SECONDS s after the batch was complete"
  fi
fi
