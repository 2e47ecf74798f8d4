// SPDX-License-Identifier: Apache-2.0

// What clients/interface_test asks of each client, done with this package: see its README.md.
//
//   interface_adapter.js                 answers calls, one line of JSON each
//   interface_adapter.js serve ADDRESS   serves the handler of the tests until SIGTERM
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

import { Batch, BigNumber, Client, Dead, EventProcessor, EventProducer, FailedTransaction, Item, jsonLines, MusterError, NotAccepted, OutputRecord, Results, RetriedBatch, Retry, Schedule, serveHandler, Unfit } from "../src";

interface Call {
  call: string;
  server: string; controller?: string; ca?: string; certificate?: string; key?: string;
  timeout?: number; patience?: number; sla?: number;
  definition: string; job: string; path: string; group: string; reason: string; traceparent?: string;
  batch: number;
  records?: unknown[];
  stream: string; events: [string, string][]; partition?: number; count: number; fail?: number; close?: boolean;
  name: string; cron?: string; time_zone?: string; at?: number; catch_up?: "none" | "once" | "all"; run_id?: string;
  revision?: number;
  lines?: number[];
  line?: string; fields?: Record<string, string>;
  request_id?: string; expected_revision?: string; handler_version?: string;
  labels?: Record<string, string>; late?: boolean; calls?: boolean; since?: number;
  states?: ("open" | "sealed" | "complete" | "cancelled")[];
}

let client = new Client();

const say = (what: object): void => console.log(JSON.stringify(what));
const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1000;

function told(batch: Batch): object {
  return {
    number: batch.number, revision: batch.revision, job: batch.job, state: batch.state, over: batch.over,
    request_id: batch.requestId.toString(), transactions: batch.transactions, aggregated: batch.aggregated,
    rejected: batch.rejected, dead_lettered: batch.deadLettered, items: batch.items, attempts: batch.attempts,
    sla: batch.slaMs === undefined ? null : batch.slaMs / 1000, late_by: batch.lateByMs / 1000,
    promised: batch.deadline === undefined ? null : (batch.deadline.getTime() - batch.created.getTime()) / 1000,
    committed: batch.flow.committed, problem: batch.problem, cancel_reason: batch.cancelReason,
    traceparent: batch.traceparent, labels: batch.labels, retry_of: batch.retryOf, retried_in: batch.retriedIn,
  };
}

async function all<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const found: Value[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** Appends one event with a property, or several without. */
async function send({ server, stream, events, partition }: Call): Promise<number[][]> {
  const producer = new EventProducer(server, stream);
  try {
    const [[key, body]] = events;
    const places = events.length > 1
      ? await producer.sendMany(events.map(([each, text]) => ({ key: each, body: text })))
      : [await producer.send({ key, body, properties: { kind: "test" } }, partition)];
    return places.map(({ partition: there, offset }) => [there, offset]);
  } finally {
    producer.close();
  }
}

/** Handles events until there were `count` different ones, and then stops, or closes; the first `fail` calls throw. */
async function processEvents({ server, stream, group, count, fail = 0, close = false }: Call): Promise<object> {
  const processor = new EventProcessor(server, stream, group, { intervalMs: 500 });
  const errors: string[] = [];
  const reasons = new Set<string>();
  const seen = new Set<string>();
  let calls = 0;
  try {
    await processor.run({
      async onEvent(partition, event) {
        calls += 1;
        if (calls <= fail) throw new Error("not yet");
        // It came before the server heard of the end, and is another member's.
        if (seen.size === count) throw new Error("no more");
        // Before the checkpoint: its answer may be lost with the server, and the event does not come again.
        seen.add(`${partition.partition} ${event.offset}`);
        say({ event: [partition.partition, event.offset, event.key.toString(), event.body.toString(),
          Object.keys(event.properties).sort()] });
        try {
          await partition.updateCheckpoint(event);
        } finally {
          if (seen.size === count) (close ? processor.close() : processor.stop());
        }
      },
      onError: ({ operation }) => errors.push(operation),
      onPartitionClosing: (_, reason) => void reasons.add(reason),
    });
  } finally {
    processor.close();
  }
  return { errors, reasons: [...reasons].sort() };
}

async function failed(transactions: AsyncIterable<FailedTransaction>): Promise<object> {
  return (await all(transactions)).map(
    ({ item, line, reason, record, retriedIn, retryOfLine }) =>
      [item, line, reason, record?.toString() ?? null, retriedIn, retryOfLine]);
}

const toldRetried = (batches: RetriedBatch[]): unknown[][] =>
  batches.map(({ batch, transactions, isNew }) => [batch, transactions, isNew]);

const stamp = (moment: Date | undefined): number | null => (moment === undefined ? null : moment.getTime() / 1000);

function toldSchedule(schedule: Schedule): object {
  const { name, revision, job, cron, timeZone, at, catchUp, labels, contentBytes, paused, next, lastBatch, problem } = schedule;
  return { name, revision, job, cron, time_zone: timeZone, at: stamp(at), catch_up: catchUp, labels, content_bytes: contentBytes,
    paused, next: stamp(next), last_batch: lastBatch, problem, ended: schedule.ended !== undefined,
    counts: [schedule.submitted, schedule.missed, schedule.failed] };
}

function toldValue(value: string | bigint | BigNumber | null): string[] | null {
  if (value === null) return null;
  if (typeof value === "string") return ["text", value];
  return typeof value === "bigint" ? ["int", String(value)] : ["decimal", value.toFixed()];
}

const toldValues = (values: OutputRecord["values"]): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toldValue(value)]));

const CALLS: Record<string, (call: Call) => unknown> = {
  open({ server, timeout, patience, controller, ca, certificate, key }) {
    client.close();
    client = new Client(server, { controller, ca, certificate, key, timeoutMs: milliseconds(timeout),
      patienceMs: milliseconds(patience), warn: () => {} });
    return null;
  },
  async apply_job({ definition, expected_revision }) {
    const { name, revised, revision, columns, groups, outputs } = await client.applyJob(
      definition, { expectedRevision: expected_revision });
    return { name, revised, revision, columns, outputs: outputs.map(({ name, kind, scale }) => [name, kind, scale]), groups: groups.map((group) => ({
      ...group, measures: group.measures.map((measure) => [measure.name, measure.whole, measure.scale]) })) };
  },
  async submit({ job, path, records, request_id, sla, traceparent, handler_version, labels }) {
    return told(await client.submit(job, records === undefined ? path : jsonLines(records), {
      requestId: request_id, slaMs: milliseconds(sla), traceparent, handlerVersion: handler_version, labels,
      progress: ({ durable }) => say({ durable }) }));
  },
  async watch({ batch }) {
    for await (const now of client.watch(batch)) say({ status: told(now) });
    return null;
  },
  wait: async ({ batch, timeout }) => told(await client.wait(batch, { timeoutMs: milliseconds(timeout) })),
  get: async ({ batch }) => told(await client.get(batch)),
  list: async ({ job, states, labels, late, calls, since }) => (await all(client.list({
    job, states, labels, late, calls, since: since === undefined ? undefined : new Date(since * 1000) }))).map(told),
  cancel: async ({ batch, reason }) => told(await client.cancel(batch, reason)),
  report: async ({ batch, group }) => (await client.report(batch, group)).map(({ keys, measures }) => ({
    keys, measures: Object.fromEntries(Object.entries(measures).map(([name, sum]) => [name, sum.toFixed()])) })),
  rejections: ({ batch }) => failed(client.rejections(batch)),
  send,
  process: processEvents,
  dead_letters: ({ batch }) => failed(client.deadLetters(batch)),
  async output({ batch }) {
    for await (const { line, values } of client.output(batch)) {
      say({ record: [line, toldValues(values)] });
    }
    return null;
  },
  call: async ({ job, line, fields, request_id }) => {
    try {
      const answer = await client.call(job, line ?? fields ?? {}, { requestId: request_id });
      return { outcome: "accepted", ...answer, outputs: answer.outputs.map(toldValues) };
    } catch (refused) {
      if (!(refused instanceof NotAccepted)) throw refused;
      const { batch, reason, deadLettered } = refused;
      return { outcome: deadLettered ? "dead_lettered" : "rejected", batch, line: refused.line, reason };
    }
  },
  retry: async ({ batch, lines }) => toldRetried(await client.retryRejections(batch, lines)),
  create_schedule: async ({ name, job, records, path, cron, time_zone, at, catch_up, labels, sla }) =>
    toldSchedule(await client.createSchedule(name, job, records === undefined ? path : jsonLines(records), {
      cron, timeZone: time_zone, at: at === undefined ? undefined : new Date(at * 1000), catchUp: catch_up, labels,
      slaMs: milliseconds(sla) })),
  update_schedule: async ({ name, job, cron, time_zone, catch_up, labels, revision }) =>
    toldSchedule(await client.updateSchedule(name, job, {
      cron, timeZone: time_zone, catchUp: catch_up, labels, expectedRevision: revision })),
  get_schedule: async ({ name }) => toldSchedule(await client.getSchedule(name)),
  list_schedules: async () => (await all(client.listSchedules())).map(toldSchedule),
  pause_schedule: async ({ name }) => toldSchedule(await client.pauseSchedule(name)),
  resume_schedule: async ({ name }) => toldSchedule(await client.resumeSchedule(name)),
  run_schedule: async ({ name, run_id }) => told(await client.runSchedule(name, run_id)),
  async delete_schedule({ name }) {
    await client.deleteSchedule(name);
    return null;
  },
  receipt: async ({ batch }) => (await client.receipt(batch)).text,
};

function failure(error: unknown): object {
  if (!(error instanceof MusterError)) return { code: "", message: String(error) };
  const { code, said, reason, facts, violations, problems, retried } = error;
  return { code, message: said, reason: reason ?? null, facts, fields: violations.map(({ field }) => field),
    retried: toldRetried(retried), problems: problems.map(({ line, column, message }) => [line, column, message]) };
}

async function answerCalls(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const call = JSON.parse(line) as Call;
    try {
      say({ answer: await CALLS[call.call](call) });
    } catch (error) {
      say({ error: failure(error) });
    }
  }
  client.close();
}

async function total(item: Item, results: Results): Promise<void> {
  for (const transaction of item.transactions) {
    const customer = transaction.get("customer");
    if (customer === "retry" && item.attempt === 1) throw new Retry("once more", 0);
    if (customer === "dead") throw new Dead("it never works");
    if (customer === "gate") await readFile(item.job.parameters.GATE);
    const amount = transaction.get("amount");
    try {
      if (item.job.outputs.length > 0) {
        const paid = new BigNumber(amount);
        results.output(transaction.line, { customer, paid: paid.isZero() ? null : paid, cents: paid.times(100) });
      }
      results.add({ by_customer: { keys: { customer }, measures: { spent: amount, purchases: 1 } } });
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      results.reject(transaction.line, error.message);
    }
  }
}

async function serve(address: string): Promise<void> {
  const server = await serveHandler(total,
    { version: "1", listen: address, columns: ["customer", "amount"], concurrency: 4 });
  console.log(`listening on ${server.address}`);
  await server.run();
}

void (process.argv[2] === "serve" ? serve(process.argv[3]) : answerCalls());
