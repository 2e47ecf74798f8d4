#!/usr/bin/env bash
# @azure/storage-queue 12.30.0 (Azure's SDK for JavaScript) with @azure/core-xml 1.5.1: sendMessage() and
# updateMessage() take all line feeds out of a text. 12.32.0, which wants Node 22, does not.
#
# Guess: a text is sent as it is; what XML needs escaped is escaped.
# Seen: of "1,a", a line feed, "2,b" and a line feed the request holds 1,a2,b: two records are one. Of CR LF the CR
# stays, which a reader of XML takes for a line feed. core-xml builds the document and then removes each line feed in
# it.
#
# Who it hurts: whoever puts lines of CSV or JSON, a log, or a signed text into a queue. The answer is 201, and what
# comes out is one line, whose hash is another one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/send.mjs" << 'PROGRAM'
import http from "node:http";
import { createRequire } from "node:module";
const { QueueClient } = createRequire(process.argv[2] + "/")("@azure/storage-queue");

const bodies = [];
const answer = `<?xml version="1.0"?><QueueMessagesList><QueueMessage>
  <MessageId>11111111-1111-1111-1111-111111111111</MessageId><PopReceipt>receipt</PopReceipt>
  <InsertionTime>Fri, 09 Oct 2026 21:04:30 GMT</InsertionTime>
  <ExpirationTime>Fri, 16 Oct 2026 21:04:30 GMT</ExpirationTime>
  <TimeNextVisible>Fri, 09 Oct 2026 21:04:30 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>`;
const service = http.createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  bodies.push(body);
  if (request.method === "PUT") response.writeHead(204, { "x-ms-popreceipt": "next" }).end();
  else response.writeHead(201, { "Content-Type": "application/xml" }).end(answer);
});
await new Promise((ready) => service.listen(0, "127.0.0.1", ready));
const queue = new QueueClient(
  `DefaultEndpointsProtocol=http;AccountName=account;AccountKey=a2V5;` +
  `QueueEndpoint=http://127.0.0.1:${service.address().port}/account;`, "q");
await queue.sendMessage("1,a\n2,b\n");
await queue.updateMessage("11111111-1111-1111-1111-111111111111", "receipt", "1,a\r\n2,b");
console.log(bodies.map((body) => JSON.stringify(body.match(/<MessageText>([^]*)<\/MessageText>/)[1])).join(" "));
service.close();
service.closeAllConnections();
PROGRAM
expect() { # VERSION SEEN PACKAGE...
  local seen
  mkdir -p "$work/$1"
  npm install --silent --prefix "$work/$1" "@azure/storage-queue@$1" "${@:3}"
  seen=$(node "$work/send.mjs" "$work/$1")
  echo "@azure/storage-queue $1: the requests hold $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect 12.30.0 '"1,a2,b" "1,a\r2,b"' @azure/core-xml@1.5.1
expect 12.32.0 '"1,a\n2,b\n" "1,a\r\n2,b"'
