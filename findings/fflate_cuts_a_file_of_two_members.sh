#!/usr/bin/env bash
# fflate 0.8.3 (for JavaScript): of a gzip file with two members gunzipSync() and gunzip() give the beginning of the
# first one, as many bytes as the last one has. pako 3.0.3 and Node's zlib read both.
#
# Guess: both members, which RFC 1952 wants as one text, or an error.
# Seen: of a member of 100000 bytes and one of 5 bytes 5 bytes come, without an error. Two members of 1000 bytes are the
# first 1000. The stream Gunzip has all.
#
# Who it hurts: readers of files that were joined with cat, that a log writer appends to, or that bgzip made. Nearly the
# whole file is missing, and nothing says so.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" fflate@0.8.3 pako@3.0.3
cat > "$work/seen.mjs" << 'PROGRAM'
import * as fflate from "fflate";
import * as pako from "pako";
import { gunzipSync, gzipSync } from "node:zlib";

for (const [first, second] of [[100000, 5], [1000, 1000]]) {
  const file = Buffer.concat([gzipSync("a".repeat(first)), gzipSync("b".repeat(second))]);
  const later = await new Promise((done) => fflate.gunzip(file, (error, text) => done(error ?? text.length)));
  let streamed = 0;
  new fflate.Gunzip((part) => (streamed += part.length)).push(file, true);
  console.log(fflate.gunzipSync(file).length, later, streamed, pako.ungzip(file).length, gunzipSync(file).length);
}
PROGRAM
seen=$(node "$work/seen.mjs" | paste --serial --delimiters ';')
echo "bytes of gunzipSync, gunzip and Gunzip of fflate 0.8.3, of pako 3.0.3 and of zlib: $seen"
[ "$seen" = "5 5 100005 100005 100005;1000 1000 2000 2000 2000" ]
