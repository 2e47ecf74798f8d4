#!/usr/bin/env bash
# ts-proto 2.18.0 (for TypeScript): fromJSON() takes "1.5s", which is how protobuf's JSON writes a Duration, for a
# duration of 0.
#
# Guess: a second and a half, as its Timestamp in JSON is a time, or an error.
# Seen: {"wait":"1.5s"} is a Duration with seconds 0 and nanos 0. {"at":"2026-11-29T00:00:00Z"} is that time.
#
# Who it hurts: services that get JSON from Go, Java, Python or a gateway: timeouts, leases, delays and retentions are
# 0, which means at once to some programs and for ever to others.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" ts-proto@2.18.0 @bufbuild/buf@1.75.0 esbuild@0.28.2 @bufbuild/protobuf@2.17.0
cd "$work"
mkdir proto
cat > proto/m.proto << 'PROTO'
syntax = "proto3";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
message M {
  google.protobuf.Duration wait = 1;
  google.protobuf.Timestamp at = 2;
}
PROTO
cat > buf.gen.yaml << 'GENERATE'
version: v2
plugins: [{local: node_modules/.bin/protoc-gen-ts_proto, out: generated, include_imports: true}]
GENERATE
cat > seen.ts << 'PROGRAM'
import { M } from "./generated/m";

const read = M.fromJSON({ wait: "1.5s", at: "2026-11-29T00:00:00Z" });
console.log(JSON.stringify(read.wait), read.at?.toISOString());
PROGRAM
node_modules/.bin/buf generate proto
node_modules/.bin/esbuild seen.ts --bundle --platform=node --outfile=seen.cjs --log-level=error
seen=$(node seen.cjs)
echo "ts-proto 2.18.0: $seen"
[ "$seen" = '{"seconds":0,"nanos":0} 2026-11-29T00:00:00.000Z' ]
