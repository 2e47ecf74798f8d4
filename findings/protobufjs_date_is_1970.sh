#!/usr/bin/env bash
# protobufjs 8.8.1 (for JavaScript): a Date for a field of google.protobuf.Timestamp is the first second of 1970. A text
# is refused.
#
# Guess: the time, as other libraries for JavaScript have it, or an error, as for the text "2026-11-29T00:00:00Z".
# Seen: verify() finds no fault in { at: new Date(...) }, fromObject() and create() take it, and what is encoded is an
# empty Timestamp, which every reader has as 1970-01-01T00:00:00Z.
#
# Who it hurts: services whose messages have times: due dates, times of readings, ends of leases. An object with a Date
# is the ordinary form in JavaScript, and the time is lost without an error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" protobufjs@8.8.1
cat > "$work/m.proto" << 'PROTO'
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message M { google.protobuf.Timestamp at = 1; }
PROTO
cat > "$work/seen.mjs" << 'PROGRAM'
import protobuf from "protobufjs";

const type = protobuf.loadSync(process.argv[2]).lookupType("M");
const message = { at: new Date("2026-11-29T00:00:00Z") };
const bytes = (made) => Buffer.from(type.encode(made).finish()).toString("hex");
const refused = (object) => {
  try {
    return bytes(type.fromObject(object));
  } catch (error) {
    return error.message;
  }
};
console.log(type.verify(message), bytes(type.fromObject(message)), bytes(type.create(message)),
  bytes(type.fromObject({ at: { seconds: 1795910400 } })), refused({ at: "2026-11-29T00:00:00Z" }));
PROGRAM
seen=$(node "$work/seen.mjs" "$work/m.proto")
echo "protobufjs 8.8.1: $seen"
[ "$seen" = "null 0a00 0a00 0a060880d6add806 .M.at: object expected" ]
