#!/usr/bin/env bash
# ts-retry-promise 0.8.1 (for JavaScript): backoff "EXPONENTIAL" waits the delay to the power of the attempt, in
# milliseconds. After 100 ms come 10 s and then five minutes, the most that it waits.
#
# Guess: the delay doubles, 100, 200 and 400 ms, or grows by another small factor, whatever unit it is counted in.
# Seen: 100, 10000 and 300000 ms. A delay of 1 ms stays 1 ms, and of 1000 ms the second wait is five minutes already.
# After the last try, which fails, it waits once more.
#
# Who it hurts: callers of a service that is away for a second. The third try comes after ten seconds, and the fourth
# never: the timeout, a minute unless said, ends it first. Tests with a delay of 1 ms show nothing of it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" ts-retry-promise@0.8.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { retry } = require("ts-retry-promise");

async function waits(delay) {
  const seen = [];
  const setTimeoutOfNode = globalThis.setTimeout;
  globalThis.setTimeout = (callback, ms) => {
    seen.push(ms);
    return setTimeoutOfNode(callback, 0);
  };
  const fail = async () => { throw new Error(`run ${seen.length + 1}`); };
  await retry(fail, { retries: 2, delay, backoff: "EXPONENTIAL", timeout: "INFINITELY" })
    .catch((error) => seen.push(error.lastError.message));
  globalThis.setTimeout = setTimeoutOfNode;
  return seen.join(" ");
}

(async () => console.log(await waits(100), ";", await waits(1), ";", await waits(1000)))();
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "ts-retry-promise 0.8.1, waits of three runs: $seen"
[ "$seen" = "100 10000 300000 run 3 ; 1 1 1 run 3 ; 1000 300000 300000 run 3" ]
