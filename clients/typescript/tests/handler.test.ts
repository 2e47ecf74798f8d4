// SPDX-License-Identifier: Apache-2.0

// Handlers as processors meet them: by the protocol, message by message.
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, test } from "node:test";
import * as tls from "node:tls";

import * as grpc from "@grpc/grpc-js";
import { BigNumber } from "bignumber.js";

import { Dead, Defer, Group, HandlerOptions, HandlerServer, OutputColumn, OutputValues, Results, Retry, Row, serveHandler, Unfit, Work } from "../src";
import type { HandlerAnswer__Output } from "../src/generated/muster/v1/HandlerAnswer";
import type { Ready__Output } from "../src/generated/muster/v1/Ready";
import type { WorkRequest } from "../src/generated/muster/v1/WorkRequest";
import type { WorkResponse__Output } from "../src/generated/muster/v1/WorkResponse";
import { clientCredentials } from "../src/channel";
import { v1 } from "../src/protos";

const GROUPS = new Map<string, Group>([
  ["by_customer", { name: "by_customer", keys: ["customer"],
    measures: [{ name: "spent", whole: false, scale: 2 }, { name: "purchases", whole: true, scale: 0 }] }],
  ["total", { name: "total", keys: ["all"], measures: [{ name: "spent", whole: false, scale: 2 }] }],
]);

function spent(amount: Row["measures"][string], customer = "Ada", purchases: bigint | number = 1): Record<string, Row> {
  return { by_customer: { keys: { customer }, measures: { spent: amount, purchases } } };
}

const COLUMNS: OutputColumn[] = [
  { name: "note", kind: "text", scale: 0 }, { name: "count", kind: "int", scale: 0 },
  { name: "total", kind: "decimal", scale: 2 }];

const newResults = (): Results => new Results(GROUPS, new Set([1, 2]), COLUMNS);

function sums(results: Results): Record<string, string> {
  return Object.fromEntries((results.toProto().groups ?? []).flatMap((group) => (group.rows ?? []).map(
    (row) => [`${group.group} ${row.keys?.join()}`, row.measures?.join(" ") ?? ""])));
}

test("rows with the same keys are added up exactly", () => {
  const results = newResults();
  results.add(spent("0.1"));
  results.add(spent(new BigNumber("0.2")));
  results.add(spent(-3, "Bob"));
  results.add(spent(1n, "Bob"));
  assert.deepEqual(sums(results), { "by_customer Ada": "0.30 2", "by_customer Bob": "-2.00 2" });
});

test("sums of 38 digits are not rounded", () => {
  const results = newResults();
  results.add(spent(`${"9".repeat(36)}.98`));
  results.add(spent("0.01"));
  assert.equal(sums(results)["by_customer Ada"], `${"9".repeat(36)}.99 2`);
  assert.throws(() => results.add(spent("0.01")), (error: Error) => error instanceof Unfit && /spent: overflows/.test(error.message));
});

test("more decimals than the job keeps are refused and not rounded", () => {
  const results = newResults();
  for (const amount of ["0.125", "1e-999999", "123456.001"]) {
    assert.throws(() => results.add(spent(amount)), /spent: needs more than 2 decimals/);
  }
  results.add(spent("0.1200"));
  assert.equal(sums(results)["by_customer Ada"], "0.12 1");
});

test("what is no exact number is refused", () => {
  const results = newResults();
  for (const amount of ["five", "NaN", "Infinity", "0x10", " 1", "", "1e999999"]) {
    assert.throws(() => results.add(spent(amount)), Unfit);
  }
  assert.throws(() => results.add(spent(new BigNumber(NaN))), Unfit);
  for (const amount of [0.5, 2 ** 53]) assert.throws(() => results.add(spent(amount)), TypeError);
  assert.throws(() => results.add(spent(1, "Ada", 2n ** 63n)), /purchases: overflows/);
  assert.throws(() => results.add(spent(1, "x".repeat(1025))), /customer: longer/);
  assert.throws(() => results.add(spent(1, "\ud83d")), /customer: not UTF-8 text/);
  assert.throws(() => results.add(spent(1, "a\0")), /customer: a NUL is not allowed/);
  assert.deepEqual(sums(results), {});
  results.add(spent(1, "Ada", -(2n ** 63n)));
});

test("a transaction counts in all its groups or in none", () => {
  const results = newResults();
  assert.throws(() => results.add({ ...spent(1), total: { keys: { all: "" }, measures: { spent: "0.001" } } }), Unfit);
  assert.deepEqual(sums(results), {});
});

test("rows that are none of the job are a mistake of the program", () => {
  const results = newResults();
  assert.throws(() => results.add({ planets: { keys: {}, measures: {} } }), TypeError);
  assert.throws(() => results.add({ total: { keys: {}, measures: { spent: 1 } } }), TypeError);
  assert.throws(() => results.reject(3, "there is no such line"), TypeError);
});

test("records of rejected lines are left out", () => {
  const results = newResults();
  results.output(2, { note: "b", count: null, total: "1E+2" });
  results.output(1, { note: "a", count: -3, total: 7n });
  results.output(1, { note: "", count: 2n ** 63n - 1n, total: null });
  results.reject(2, "no");
  assert.deepEqual(results.toProto().outputs, [
    { line: 1, fields: ["a", "-3", "7.00"] }, { line: 1, fields: ["", "9223372036854775807", ""] }]);
});

test("a record that does not fit its columns is refused", () => {
  const results = newResults();
  const fitting: OutputValues = { note: "x".repeat(65536 - 4 - 4 - 4 - 5 - 4), count: 7, total: "0.5" };
  const refused: [OutputValues, RegExp][] = [
    [{ count: 2n ** 63n }, /^count: overflows$/], [{ count: "0.5" }, /^count: needs more than 0 decimals$/],
    [{ total: "1e-999999" }, /^total: needs more than 2 decimals$/], [{ total: "1e999999" }, /^total: overflows$/],
    [{ total: "five" }, /^total: not a number$/], [{ note: "a\0b" }, /^note: a NUL is not allowed$/],
    [{ note: "\ud800" }, /^note: not UTF-8 text$/],
    [{ note: `${String(fitting.note)}x` }, /^a record of 65537 bytes; at most 65536$/]];
  for (const [values, reason] of refused) {
    assert.throws(() => results.output(1, { ...fitting, ...values }),
      (error: Error) => error instanceof Unfit && reason.test(error.message), String(reason));
  }
  assert.deepEqual(results.toProto().outputs, []);
  results.output(1, fitting);
});

test("a record that is none of the job is a mistake of the program", () => {
  const results = newResults();
  assert.throws(() => results.output(3, { note: "", count: 1, total: 1 }), TypeError);
  assert.throws(() => results.output(1, { note: "", count: 1 }), TypeError);
  assert.throws(() => results.output(1, { note: "", count: 1, total: 1, more: 1 }), TypeError);
  assert.throws(() => results.output(1, { note: 1, count: 1, total: 1 }), TypeError);
  assert.throws(() => results.output(1, { note: "", count: 1, total: 0.5 }), TypeError);
});

const open: { stop(): void | Promise<void> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});

async function serve(work: Work, options: Partial<HandlerOptions> = {}): Promise<HandlerServer> {
  const server = await serveHandler(work, { version: "1", listen: "127.0.0.1:0", ...options });
  open.push({ stop: () => server.stop(0) });
  return server;
}

/** A processor's side of one call. */
class Processor {
  private readonly stub;
  private readonly call;
  private readonly responses: AsyncIterator<WorkResponse__Output>;

  constructor(server: HandlerServer, credentials = grpc.credentials.createInsecure()) {
    // A connection of its own.
    this.stub = new v1.HandlerService(server.address, credentials, { "grpc.use_local_subchannel_pool": 1 });
    this.call = this.stub.work();
    this.call.on("error", () => {});
    this.responses = this.call[Symbol.asyncIterator]() as AsyncIterator<WorkResponse__Output>;
    open.push({ stop: () => {
      this.call.cancel();
      this.stub.close();
    } });
  }

  send(request: WorkRequest): void {
    this.call.write(request);
  }

  async greet(protocolVersion = 1, columns = ["customer", "amount"]): Promise<Ready__Output | null | undefined> {
    this.send({ hello: { protocolVersion, processor: "test", schema: { job: "purchases", columns, groups: [{
      name: "by_customer", keys: ["customer"], measures: [
        { name: "spent", type: "MEASURE_TYPE_DECIMAL", scale: 2 }, { name: "purchases", type: "MEASURE_TYPE_INT" }],
    }] } } });
    return (await this.responses.next()).value?.ready;
  }

  give(item: string, ...records: string[][]): void {
    this.send({ item: { item, attempt: 1, deadline: { seconds: 60 },
      transactions: records.map((fields, place) => ({ line: place + 1, fields })) } });
  }

  async answer(): Promise<HandlerAnswer__Output> {
    const answer = (await this.responses.next()).value?.answer;
    assert.ok(answer);
    return answer;
  }

  end(): void {
    this.call.end();
  }

  async isOver(): Promise<boolean> {
    return (await this.responses.next()).done === true;
  }
}

async function greeted(work: Work, options: Partial<HandlerOptions> = {}): Promise<Processor> {
  const processor = new Processor(await serve(work, options));
  await processor.greet();
  return processor;
}

const total: Work = (item, results) => {
  for (const transaction of item.transactions) {
    try {
      results.add(spent(transaction.get("amount"), transaction.get("customer")));
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      results.reject(transaction.line, error.message);
    }
  }
};

test("an item is answered with its sums and what is rejected", async () => {
  const processor = new Processor(await serve(total, { name: "totals", concurrency: 3 }));
  const ready = await processor.greet();
  assert.deepEqual([ready?.name, ready?.version, ready?.concurrency], ["totals", "1", 3]);
  processor.give("1/7", ["Ada", "19.99"], ["Ada", "0.01"], ["Bob", "five"]);
  const { item, ok } = await processor.answer();
  assert.equal(item, "1/7");
  assert.deepEqual(ok?.groups[0].rows[0].measures, ["20.00", "2"]);
  assert.deepEqual(ok?.rejected.map(({ line, reason }) => [line, reason]), [["3", "spent: not a number"]]);
  processor.end();
  assert.ok(await processor.isOver());
});

test("what a handler throws is an outcome", async () => {
  const outcomes: Record<string, () => Error> = {
    retry: () => new Retry("later", 60_000), defer: () => new Defer("not now"), dead: () => new Dead("never"),
    error: () => new RangeError("broken"),
  };
  const processor = await greeted(async (item) => {
    throw outcomes[item.name]();
  });
  const ask = async (name: string): Promise<HandlerAnswer__Output> => {
    processor.give(name, ["Ada", "1"]);
    return processor.answer();
  };
  const { retry } = await ask("retry");
  assert.deepEqual([retry?.why, retry?.after?.seconds], ["later", "60"]);
  const { defer } = await ask("defer");
  assert.deepEqual([defer?.why, defer?.after], ["not now", null]);
  assert.equal((await ask("dead")).dead?.why, "never");
  assert.equal((await ask("error")).retry?.why, "RangeError: broken");
});

test("an item is answered whatever its handler throws", async () => {
  const thrown: Record<string, () => unknown> = {
    nothing: () => undefined, wordless: () => Object.create(null), dead: () => new Dead(undefined as unknown as string),
    long: () => new Dead("x".repeat(5_000_000)), past: () => new Retry("late", -1), far: () => new Defer("", 1e15),
    text: () => new Retry("soon", "5s" as unknown as number), bigint: () => new Retry("soon", 5n as unknown as number),
  };
  const processor = await greeted(async (item) => {
    throw thrown[item.name]();
  });
  const answers: Record<string, HandlerAnswer__Output> = {};
  for (const name of Object.keys(thrown)) {
    processor.give(name);
    answers[name] = await processor.answer();
  }
  assert.equal(answers.nothing.retry?.why, "undefined");
  assert.equal(answers.wordless.retry?.why, "no words");
  assert.equal(answers.dead.dead?.why, "undefined");
  assert.equal(answers.long.dead?.why, "x".repeat(1000));
  assert.deepEqual([answers.past.retry?.after?.seconds, answers.past.retry?.after?.nanos], ["0", 0]);
  assert.deepEqual([answers.far.defer?.after?.seconds, answers.far.defer?.why], ["604800", "no reason given"]);
  assert.deepEqual([answers.text.retry?.why, answers.text.retry?.after], ["TypeError: afterMs: a string is no time", null]);
  assert.equal(answers.bigint.retry?.why, "TypeError: afterMs: a bigint is no time");
});

test("work that yields is a failure and not an empty result", async () => {
  const processor = await greeted(async function* () {} as unknown as Work);
  processor.give("1/1", ["Ada", "1"]);
  assert.match((await processor.answer()).retry?.why ?? "", /^TypeError: a generator was returned/);
});

test("a reason with half a character is another one, and no message that is refused", async () => {
  const half = "😀".slice(0, 1);
  const outcomes: Record<string, () => Error> = {
    retry: () => new Retry(half), defer: () => new Defer(half), dead: () => new Dead(half), error: () => new Error(half),
  };
  const processor = await greeted(async (item, results) => {
    if (item.name in outcomes) throw outcomes[item.name]();
    results.reject(1, half);
  });
  const ask = async (name: string): Promise<HandlerAnswer__Output> => {
    processor.give(name, ["Ada", "1"]);
    return processor.answer();
  };
  assert.equal((await ask("retry")).retry?.why, "\ufffd");
  assert.equal((await ask("defer")).defer?.why, "\ufffd");
  assert.equal((await ask("dead")).dead?.why, "\ufffd");
  assert.equal((await ask("error")).retry?.why, "Error: \ufffd");
  assert.equal((await ask("reject")).ok?.rejected[0].reason, "\ufffd");
});

test("results that fit no message are dead", async () => {
  const processor = await greeted((_, results) => {
    for (let row = 0; row < 5000; row += 1) results.add(spent(1, "x".repeat(1000) + row));
  });
  processor.give("1/1", ["Ada", "1"]);
  assert.match((await processor.answer()).dead?.why ?? "", /more than a message may have/);
});

test("a job that the handler cannot work on is refused", async () => {
  const server = await serve(total, { name: "totals", columns: ["customer", "amount"], groups: ["by_customer"] });
  await assert.rejects(new Processor(server).greet(1, ["customer"]), (error: grpc.ServiceError) =>
    error.code === grpc.status.FAILED_PRECONDITION && /needs the column amount/.test(error.details));
  await assert.rejects(new Processor(server).greet(2), { code: grpc.status.FAILED_PRECONDITION });
});

test("an item that is abandoned has its signal aborted and no answer", async () => {
  let begun = (): void => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const processor = await greeted(async (item) => {
    if (item.name !== "1/1") return;
    const aborted = new Promise((resolve) => item.signal.addEventListener("abort", resolve));
    begun();
    await aborted;
  }, { concurrency: 2 });
  processor.give("1/1", ["Ada", "1"]);
  await hasBegun;
  processor.send({ abandon: { item: "1/1" } });
  processor.give("1/2", ["Ada", "1"]);
  assert.equal((await processor.answer()).item, "1/2");
});

test("a server that stops answers what it has and ends the call with OK", async () => {
  let begun = (): void => {};
  let end = (): void => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const mayEnd = new Promise<void>((resolve) => (end = resolve));
  const server = await serve(async () => {
    begun();
    await mayEnd;
  });
  const processor = new Processor(server);
  await processor.greet();
  processor.give("1/1", ["Ada", "1"]);
  await hasBegun;
  const stopped = server.stop(60_000);
  end();
  assert.equal((await processor.answer()).item, "1/1");
  assert.ok(await processor.isOver());
  await stopped;
});

test("processors beyond the bound are told to come again", async () => {
  const server = await serve(total, { maxProcessors: 1 });
  const first = new Processor(server);
  await first.greet();
  await assert.rejects(new Processor(server).greet(), { code: grpc.status.UNAVAILABLE });
  first.end();
  assert.ok(await first.isOver());
  assert.equal((await new Processor(server).greet())?.version, "1");
});

test("a second server at the same address is a mistake", async () => {
  const server = await serve(total);
  await assert.rejects(serve(total, { listen: server.address }));
});

test("renewed certificates are shown and trusted by both sides", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "muster-handler-"));
  open.push({ stop: () => rmSync(folder, { recursive: true }) });
  const [certificate, key] = [path.join(folder, "me.pem"), path.join(folder, "me.key")];
  const files = { ca: certificate, certificate, key };
  const renew = (): Buffer => {
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-subj", "/CN=me", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key],
    { stdio: "ignore" });
    return readFileSync(certificate);
  };
  renew();
  const server = await serve(total, files);
  const before = clientCredentials(files); // connects later
  const shown = (): Promise<Buffer | undefined> => new Promise((resolve, reject) => {
    const [host, port] = server.address.split(":");
    const socket = tls.connect({ host, port: Number(port), ALPNProtocols: ["h2"], rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().raw);
      socket.destroy();
    });
    socket.on("error", reject);
  });
  const renewed = new X509Certificate(renew()).raw;
  while (!(await shown())?.equals(renewed));
  const processor = new Processor(server, before);
  assert.equal((await processor.greet())?.version, "1");
  writeFileSync(key, "half of a file");
  assert.equal((await new Processor(server, before).greet())?.version, "1");
});
