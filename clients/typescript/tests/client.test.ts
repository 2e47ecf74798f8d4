// SPDX-License-Identifier: Apache-2.0

// The client against an initiator that breaks, waits and refuses on command.
import * as assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import * as grpc from "@grpc/grpc-js";

import { Client, EventProcessor, EventProducer, jsonLines, MusterError, SubmitProgress } from "../src";
import { EventSession } from "../src/event_session";
import { Patience } from "../src/patience";
import { toDuration } from "../src/protos";
import { breakOff, failure, FakeInitiator } from "./fake_initiator";

const MIB = 1 << 20;
// No two MiB are alike.
const CONTENT = Buffer.from(
  Array.from({ length: (5 * MIB) / 8 }, (_, line) => `${String(line).padStart(7, "0")}\n`).join(""));

let initiator: FakeInitiator;
let client: Client;
let folder: string;

beforeEach(async () => {
  initiator = new FakeInitiator();
  client = new Client(await initiator.start(), { patienceMs: 20_000, warn: () => {} });
  folder = mkdtempSync(path.join(tmpdir(), "muster-client-"));
});

afterEach(() => {
  client.close();
  initiator.stop();
  rmSync(folder, { recursive: true });
});

function* pieces(size: number): Generator<Buffer> {
  for (let begin = 0; begin < CONTENT.length; begin += size) yield CONTENT.subarray(begin, begin + size);
}

async function failed(call: Promise<unknown>): Promise<MusterError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof MusterError, String(error));
  return error;
}

test("what can be read only once goes on where it was durable", async () => {
  initiator.breaks = [(there) => (there >= 2 * MIB ? breakOff() : undefined), breakOff];
  const batch = await client.submit("job", pieces(100_000), { requestId: "once" });
  assert.equal(batch.number, 7);
  assert.ok(initiator.content.equals(CONTENT));
  assert.deepEqual(initiator.ids(), ["once", "once", "once"]);
});

test("an upload that another process has begun is not sent again", async () => {
  initiator.content = CONTENT.subarray(0, 3 * MIB + 12345);
  await client.submit("job", Readable.from(pieces(MIB)), { requestId: "march" });
  assert.ok(initiator.content.equals(CONTENT));
  assert.equal(initiator.received, 2);
});

test("pieces that come in the same buffer are the content that they were", async () => {
  function* reused(): Generator<Buffer> {
    const buffer = Buffer.alloc(100_000);
    for (const piece of pieces(buffer.length)) yield buffer.subarray(0, piece.copy(buffer));
  }
  await client.submit("job", reused());
  assert.ok(initiator.content.equals(CONTENT));
});

test("progress says what is durable and how much there is", async () => {
  const seen: SubmitProgress[] = [];
  await client.submit("job", CONTENT, { progress: (told) => seen.push(told) });
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5].map((done) => ({ batch: 7, durable: done * MIB, size: 5 * MIB })));
});

test("the same content has the same request id, and once read content a new one", async () => {
  const file = path.join(folder, "content");
  writeFileSync(file, "a\n");
  for (const content of [Buffer.from("a\n"), file, [Buffer.from("a\n")], [Buffer.from("a\n")]]) {
    initiator.content = Buffer.alloc(0);
    await client.submit("job", content);
  }
  const [first, second, third, fourth] = initiator.ids();
  assert.match(first, /^job:[0-9a-f]{32}$/);
  assert.equal(second, first);
  assert.equal(new Set([first, third, fourth]).size, 3);
});

test("a submit says what its batch is promised and to which trace it belongs", async () => {
  await client.submit("job", Buffer.from("1\n"),
    { slaMs: 1500, traceparent: "00-4b-00-01", tracestate: "a=b", tenant: "shop", handlerVersion: "2" });
  const [header] = initiator.headers;
  assert.deepEqual([header.sla?.seconds, header.sla?.nanos, header.traceparent, header.tracestate, header.tenant,
    header.handlerVersion, header.sizeHint], ["1", 500_000_000, "00-4b-00-01", "a=b", "shop", "2", "2"]);
  initiator.content = Buffer.alloc(0);
  await client.submit("job", Buffer.from("1\n"));
  assert.equal(initiator.headers[1].sla, null);
});

test("records are a line of JSON each", () => {
  assert.equal(jsonLines([{ customer: "Ada", amount: "1.10" }, { customer: "Bob" }]).toString(),
    '{"customer":"Ada","amount":"1.10"}\n{"customer":"Bob"}\n');
  for (const amount of [NaN, Infinity]) {
    assert.throws(() => jsonLines([{ items: [{ amount }] }]), { name: "TypeError", message: `amount: ${amount} is no number of JSON` });
  }
});

test("an empty content is sealed at once", async () => {
  await client.submit("job", Buffer.alloc(0));
  assert.equal(initiator.received, 0);
});

test("content of one chunk does not wait until its header is accepted", async () => {
  initiator.late = true;
  await client.submit("job", CONTENT.subarray(0, MIB));
  assert.ok(initiator.content.equals(CONTENT.subarray(0, MIB)));
});

test("content of one chunk is not sent twice where it is known", async () => {
  initiator.content = CONTENT.subarray(0, MIB);
  await client.submit("job", CONTENT.subarray(0, MIB));
  assert.equal(initiator.received, 0);
  assert.equal(initiator.headers.length, 2);
});

test("an upload does not run more than 8 MiB ahead", async () => {
  initiator.acknowledges = false;
  let taken = 0;
  function* endless(): Generator<Buffer> {
    for (;;) {
      taken += 1;
      yield Buffer.alloc(MIB);
    }
  }
  initiator.breaks = [(there) => (there >= 8 * MIB ? failure(grpc.status.INVALID_ARGUMENT, "enough") : undefined)];
  assert.equal((await failed(client.submit("job", endless()))).code, "INVALID_ARGUMENT");
  assert.equal(taken, 8);
});

test("content that cannot be read is the caller's error", async () => {
  function* failing(): Generator<Buffer> {
    yield CONTENT;
    throw new RangeError("the tape broke");
  }
  await assert.rejects(client.submit("job", failing()), RangeError);
  await assert.rejects(client.submit("job", ["text"] as unknown as Buffer[]), TypeError);
  await assert.rejects(client.submit("job", "/no/such/file"), { code: "ENOENT" });
});

test("a file that cannot be opened is the caller's error", async () => {
  const socket = path.join(folder, "socket"); // it has a size, and nobody may open it
  const server = createServer().listen(socket);
  await once(server, "listening");
  try {
    await assert.rejects(client.submit("job", socket), { code: "ENXIO" });
    await assert.rejects(client.submit("job", socket, { requestId: "once" }), { code: "ENXIO" });
    await assert.rejects(client.createSchedule("daily", "job", socket, { cron: "0 4 * * *" }), { code: "ENXIO" });
  } finally {
    server.close();
  }
});

test("what progress throws ends the upload", async () => {
  const progress = (): void => {
    throw new RangeError("enough");
  };
  await assert.rejects(client.submit("job", CONTENT, { progress }), RangeError);
});

test("a signal ends an upload", async () => {
  const stop = new AbortController();
  initiator.breaks = [() => {
    stop.abort(new RangeError("enough"));
    return breakOff();
  }];
  await assert.rejects(client.submit("job", CONTENT, { signal: stop.signal }), RangeError);
});

test("a batch that was cancelled meanwhile is not begun anew", async () => {
  initiator.breaks = [() => {
    initiator.batch = 8;
    return breakOff();
  }];
  const error = await failed(client.submit("job", CONTENT));
  assert.deepEqual([error.reason, error.said], ["BATCH_CANCELLED", "batch 7 was cancelled"]);
});

test("trouble that lasts longer than the patience comes out", async () => {
  const hasty = new Client("127.0.0.1:1", { patienceMs: -1, warn: () => {} });
  assert.equal((await failed(hasty.submit("job", CONTENT))).code, "UNAVAILABLE");
  hasty.close();
});

test("an initiator that accepts and gets no further is no news", async () => {
  initiator.unsealed = failure(grpc.status.UNAVAILABLE, "the disk fails");
  const hasty = new Client(initiator.address, { patienceMs: 0, warn: () => {} });
  try {
    const trouble = await failed(hasty.submit("job", Buffer.from("1\n")));
    assert.equal(trouble.code, "UNAVAILABLE");
    assert.match(trouble.message, /the disk fails/);
  } finally {
    hasty.close();
  }
});

test("trouble begins anew after news", async () => {
  const patience = new Patience(0, () => {});
  const trouble = new MusterError("UNAVAILABLE", "about to stop");
  for (let time = 0; time < 2; time += 1) {
    await patience.waitAfter(trouble, "the test");
    patience.refresh();
  }
  await patience.waitAfter(trouble, "the test");
  await assert.rejects(patience.waitAfter(trouble, "the test"), MusterError);
});

test("a watch goes on after the last revision that it saw", async () => {
  initiator.watches = [[3, 4], [], [9]];
  const seen: number[] = [];
  for await (const batch of client.watch(7)) seen.push(batch.revision);
  assert.deepEqual([seen, initiator.watched], [[3, 4, 9], [0, 4, 4]]);
});

test("a wait ends with its time", async () => {
  initiator.watches = [[1], ...Array.from({ length: 1000 }, () => [])];
  assert.equal((await failed(client.wait(7, { timeoutMs: 300 }))).code, "DEADLINE_EXCEEDED");
});

test("an error carries what the server said for programs", async () => {
  // google.rpc.Status: BadRequest, RetryInfo, ErrorInfo; as muster's servers send it.
  const any = (name: string, value: Buffer): Buffer => {
    const url = Buffer.from(`type.googleapis.com/google.rpc.${name}`);
    const inside = Buffer.concat([Buffer.from([0x0a, url.length]), url, Buffer.from([0x12, value.length]), value]);
    return Buffer.concat([Buffer.from([0x1a, inside.length]), inside]);
  };
  const text = (field: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), Buffer.from(value)]);
  const violation = Buffer.concat([text(1, "batch"), text(2, "must not be 0")]);
  const fact = Buffer.concat([text(1, "limit"), text(2, "500")]);
  initiator.fails = failure(grpc.status.INVALID_ARGUMENT, "because", Buffer.concat([
    any("BadRequest", Buffer.concat([Buffer.from([0x0a, violation.length]), violation])),
    any("RetryInfo", Buffer.from([0x0a, 0x02, 0x08, 0x02])),
    any("ErrorInfo", Buffer.concat([text(1, "TOO_MANY"), text(2, "muster"), Buffer.from([0x1a, fact.length]), fact]))]));
  const error = await failed(client.get(7));
  assert.deepEqual([error.code, error.said, error.retryAfterMs, error.reason, error.facts],
    ["INVALID_ARGUMENT", "because", 2000, "TOO_MANY", { limit: "500" }]);
  assert.deepEqual(error.violations, [{ field: "batch", description: "must not be 0" }]);
});

const retriedIn = (batch: number, transactions: number, more = false): object =>
  ({ retries: [{ batch, transactions, isNew: true }], more });

test("all that was rejected is retried until nothing is left", async () => {
  initiator.retries = [retriedIn(9, 50_000, true), retriedIn(10, 1)];
  assert.deepEqual(await client.retryRejections(7),
    [{ batch: 9, transactions: 50_000, isNew: true }, { batch: 10, transactions: 1, isNew: true }]);
  assert.deepEqual(initiator.retried.map(({ batch, lines, all }) => [batch, lines, all]), [["7", [], true], ["7", [], true]]);
});

test("a thousand lines are retried with each call", async () => {
  initiator.retries = [retriedIn(9, 1000), retriedIn(10, 1)];
  await client.retryRejections(7, Array.from({ length: 1001 }, (_, place) => place + 1));
  assert.deepEqual(initiator.retried.map(({ lines, all }) => [lines.length, lines.at(-1), all]),
    [[1000, "1000", false], [1, "1001", false]]);
});

test("what was retried before a failure comes with it", async () => {
  initiator.retries = [retriedIn(9, 50_000, true), failure(grpc.status.RESOURCE_EXHAUSTED, "too much waits")];
  const error = await failed(client.retryRejections(7));
  assert.deepEqual([error.code, error.retried], ["RESOURCE_EXHAUSTED", [{ batch: 9, transactions: 50_000, isNew: true }]]);
});

test("no line is not taken for all", async () => {
  await assert.rejects(client.retryRejections(7, []), TypeError);
  assert.equal(initiator.retried.length, 0);
});

test("no more records are kept than one answer has", async () => {
  initiator.rejections = [{ item: 0, line: 1 }, { item: 0, line: 4 }, { item: 2, line: 9, retriedIn: 8, retryOfLine: 3 }];
  const seen: unknown[] = [];
  for await (const { line, record, retriedIn: batch, retryOfLine } of client.rejections(7)) {
    seen.push([line, record?.toString(), batch, retryOfLine]);
    assert.equal(initiator.read, seen.length);
  }
  assert.deepEqual(seen, [[1, "record 1", 0, 0], [4, "record 4", 0, 0], [9, "record 9", 8, 3]]);
});

test("a report is read also without patience", async () => {
  const hasty = new Client(initiator.address, { patienceMs: 0, warn: () => {} });
  try {
    const rows = await hasty.report(7, "by_customer");
    assert.deepEqual(rows.map(({ measures }) => measures.revenue.toFixed(2)), ["1.50"]);
  } finally {
    hasty.close();
  }
});

test("the output waits for a controller as long as its patience, which is more than one call takes", async () => {
  const hasty = new Client(initiator.address, { patienceMs: 20_000, timeoutMs: 1_000, warn: () => {} });
  initiator.unlisted = 5; // the last of them after 1.5 s
  const seen: unknown[] = [];
  for await (const { values } of hasty.output(7)) seen.push(values.note);
  assert.deepEqual([seen, initiator.listed], [["paid"], 6]);
  hasty.close();
});

test("an output without a controller says so in the end", async () => {
  const hasty = new Client(initiator.address, { patienceMs: -1, warn: () => {} });
  initiator.unlisted = Infinity;
  const error = await failed(hasty.output(7).next());
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.said, /has heard of no controller: start one/);
  hasty.close();
});

test("the events of a partition wait until it is initialized", async () => {
  const said = [
    { message: "opened", opened: { partition: 3, epoch: "1", beginsAt: "0" } },
    { message: "event", event: { partition: 3, event: { offset: "0", key: Buffer.alloc(0), body: Buffer.alloc(0), properties: {} } } },
    { message: "ended", ended: { code: 0, message: "" } },
  ];
  const call = Object.assign(Readable.from(said), { write: () => true, end: () => {}, cancel: () => {} });
  const order: string[] = [];
  await new EventSession({
    onPartitionInitializing: async () => {
      await sleep(20);
      order.push("initialized");
    },
    onEvent: ({ partition }) => void order.push(`event of ${partition}`),
  }).run({ processEvents: () => call } as unknown as Parameters<EventSession["run"]>[0], {});
  assert.deepEqual(order, ["initialized", "event of 3"]);
});

test("a schedule has a cron or a time", async () => {
  await assert.rejects(client.createSchedule("both", "job", Buffer.from("1"), { cron: "@daily", at: new Date() }), TypeError);
});

test("a connection that breaks is unavailable, also where gRPC takes it for a mistake of the client", async () => {
  const said = "Received RST_STREAM with code 2 triggered by internal client error: Session closed with error code 2";
  initiator.fails = failure(grpc.status.INTERNAL, said);
  const error = await failed(client.get(7));
  assert.deepEqual([error.code, error.said], ["UNAVAILABLE", said]);
  initiator.fails = failure(grpc.status.INTERNAL, "a broken invariant");
  assert.equal((await failed(client.get(7))).code, "INTERNAL");
});

test("a fraction that rounds to a whole second becomes one", () => {
  assert.deepEqual(toDuration(999.9999999999), { seconds: "1", nanos: 0 });
  assert.deepEqual(toDuration(999.999999), { seconds: "0", nanos: 999_999_999 });
  assert.deepEqual(toDuration(90_000.5), { seconds: "90", nanos: 500_000 });
});

test("an address that is not HOST:PORT is refused with the form that it must have", () => {
  for (const address of ["", "localhost", "localhost:", ":7700", "localhost:http", "localhost:0", "localhost:65536",
    "::1:7700", "[::1]", "http://localhost:7700", "me@localhost:7700", "local host:7700", "localhost:7700\n"]) {
    for (const make of [() => new Client(address), () => new Client("localhost:7700", { controller: address }),
      () => new EventProducer(address, "homes"), () => new EventProcessor(address, "homes", "store")]) {
      assert.throws(make, (error: Error) => error instanceof TypeError && error.message.includes("must be HOST:PORT"));
    }
  }
  for (const address of ["localhost:7700", "127.0.0.1:1", "[::1]:65535", "mesh.example.org:7700"]) {
    new Client(address, { controller: address }).close();
  }
});

test("a certificate and its key go together", () => {
  assert.throws(() => new Client("localhost:7700", { certificate: "me.pem" }), TypeError);
});
