// SPDX-License-Identifier: Apache-2.0

// One call of a processor, and what a handler is given.
import type * as grpc from "@grpc/grpc-js";

import type { HandlerAnswer } from "./generated/muster/v1/HandlerAnswer";
import type { HandlerItem__Output } from "./generated/muster/v1/HandlerItem";
import type { WorkRequest__Output } from "./generated/muster/v1/WorkRequest";
import type { WorkResponse } from "./generated/muster/v1/WorkResponse";
import { OutputColumn, toWords } from "./output";
import { handlerAnswer, toDuration, toMilliseconds, toNumber } from "./protos";
import { Group } from "./report";
import { Results } from "./results";
import { checkDone } from "./work";

/** Of the 4 MiB that a message may have; the rest is for what is around an answer. */
const MAX_ANSWER_BYTES = (4 << 20) - 1024;
/** As muster's processors take it: 7 days. */
const MAX_AFTER_MS = 7 * 24 * 3600 * 1000;

/**
 * Thrown by a handler: try again, after some time, at most 7 days, or when the job's retry policy says; counts as an
 * attempt.
 */
export class Retry extends Error {
  constructor(readonly why: string, readonly afterMs?: number) {
    super(why);
  }
}

/** Thrown by a handler: not now, and not the item's fault; as Retry, but the attempt does not count. */
export class Defer extends Retry {}

/** Thrown by a handler: it will never work, so the item goes to the poison queue at once. */
export class Dead extends Error {
  constructor(readonly why: string) {
    super(why);
  }
}

/** The job that a processor calls for. */
export interface HandledJob {
  name: string;
  revision: string;
  columns: string[];
  groups: ReadonlyMap<string, Group>;
  /** The handler's `env` in the job file. */
  parameters: Record<string, string>;
  /** Who calls; for logs. */
  processor: string;
  /** Of the records that it may return. */
  outputs: OutputColumn[];
}

/** One record of the input; `fields` are in the order of the job's columns. */
export class Transaction {
  constructor(readonly line: number, readonly fields: string[], private readonly places: ReadonlyMap<string, number>) {}

  /** The field of a column; TypeError: the job has no such column. */
  get(column: string): string {
    const place = this.places.get(column);
    if (place === undefined) throw new TypeError(`the job has no column ${column}`);
    return this.fields[place];
  }
}

/**
 * A work item. It may come again, here or elsewhere: what is done outside of its results (a payment, a
 * mail) must be idempotent by its name.
 */
export interface Item {
  job: HandledJob;
  name: string;
  attempt: number;
  deadlineMs: number;
  /** W3C trace of the item's batch; empty: it has none. */
  traceparent: string;
  tracestate: string;
  transactions: Transaction[];
  /** Aborts when no one waits for the results any more; going on does no harm. */
  signal: AbortSignal;
}

/** Fills an item's results. Throws Retry, Defer or Dead; anything else that it throws is a Retry. */
export type Work = (item: Item, results: Results) => void | Promise<void>;

type Stream = grpc.ServerDuplexStream<WorkRequest__Output, WorkResponse>;

export class HandlerCall {
  private readonly running = new Map<string, AbortController>(); // without those that were abandoned
  private readonly places: ReadonlyMap<string, number>;
  private leaving = false; // one of the two sides: nothing new is taken
  private ended = false;

  constructor(private readonly stream: Stream, private readonly job: HandledJob, private readonly work: Work,
    private readonly onEnd: () => void) {
    this.places = new Map(job.columns.map((column, place) => [column, place]));
  }

  /** Passes over steps that it does not know. */
  take(request: WorkRequest__Output): void {
    if (request.step === "item" && request.item) this.begin(request.item);
    if (request.step === "abandon" && request.abandon) {
      this.running.get(request.abandon.item)?.abort();
      this.running.delete(request.abandon.item);
      this.endIfDone();
    }
  }

  /** Takes nothing new; ends with OK when what it has is answered. */
  leave(): void {
    this.leaving = true;
    this.endIfDone();
  }

  /** No one waits for any answer. */
  giveUp(): void {
    for (const abandoned of this.running.values()) abandoned.abort();
    this.running.clear();
    this.leave();
  }

  private begin(sent: HandlerItem__Output): void {
    if (this.leaving) return; // unanswered when the call ends with OK: no attempt counts
    const abandoned = new AbortController();
    this.running.set(sent.item, abandoned);
    void answerTo(this.work, this.itemOf(sent, abandoned.signal)).then((answer) => {
      // The same item may have come again since it was abandoned: that is another run.
      if (this.running.get(sent.item) !== abandoned) return;
      this.running.delete(sent.item);
      this.stream.write({ answer });
      this.endIfDone();
    });
  }

  private itemOf(sent: HandlerItem__Output, signal: AbortSignal): Item {
    return {
      job: this.job, name: sent.item, attempt: sent.attempt,
      deadlineMs: sent.deadline ? toMilliseconds(sent.deadline) : 0,
      traceparent: sent.traceparent, tracestate: sent.tracestate,
      transactions: sent.transactions.map(
        ({ line, fields }) => new Transaction(toNumber(line), fields, this.places)),
      signal,
    };
  }

  private endIfDone(): void {
    if (!this.leaving || this.running.size > 0 || this.ended) return;
    this.ended = true;
    this.stream.end();
    this.onEnd();
  }
}

async function answerTo(work: Work, item: Item): Promise<HandlerAnswer> {
  const results = new Results(
    item.job.groups, new Set(item.transactions.map(({ line }) => line)), item.job.outputs);
  try {
    checkDone(await work(item, results));
    const answer: HandlerAnswer = { item: item.name, ok: results.toProto() };
    const size = handlerAnswer.size(answer);
    if (size > MAX_ANSWER_BYTES) throw new Dead(`the results have ${size} bytes, more than a message may have`);
    return answer;
  } catch (error) {
    return { item: item.name, ...outcomeOf(error, item) };
  }
}

function outcomeOf(thrown: unknown, item: Item): Pick<HandlerAnswer, "dead" | "defer" | "retry"> {
  let error = thrown;
  try {
    if (error instanceof Dead) return { dead: { why: reasonOf(error.why) } };
    if (error instanceof Retry) {
      const told = { why: reasonOf(error.why), after: error.afterMs === undefined ? null : spanOf(error.afterMs) };
      return error instanceof Defer ? { defer: told } : { retry: told };
    }
  } catch (mistake) {
    error = mistake;
  }
  // Only this item has failed: others of the call need not suffer for it.
  console.error(`muster: item ${item.name} failed:`, error);
  return { retry: { why: reasonOf(error) } };
}

function spanOf(afterMs: number): ReturnType<typeof toDuration> {
  if (typeof afterMs !== "number" || Number.isNaN(afterMs)) throw new TypeError(`afterMs: a ${typeof afterMs} is no time`);
  return toDuration(Math.min(Math.max(afterMs, 0), MAX_AFTER_MS));
}

function reasonOf(why: unknown): string {
  return toWords(why) || "no reason given";
}
