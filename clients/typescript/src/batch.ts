// SPDX-License-Identifier: Apache-2.0

// What a batch looks like to a client.
import type { BatchStatus__Output } from "./generated/muster/v1/BatchStatus";
import { toDate, toMilliseconds, toNumber } from "./protos";

/** Where a batch stands; "unknown" is a state of a newer muster. */
export type BatchState = "open" | "sealed" | "complete" | "cancelled" | "unknown";

/** How far a batch has come, in transactions; `split` is the share of the content that was split, 0 to 1. */
export interface Flow {
  read: number;
  queued: number;
  processed: number;
  committed: number;
  split: number;
}

/** A batch as it stood at `revision`. */
export interface Batch {
  number: number;
  revision: number;
  job: string;
  jobRevision: string;
  /** That the batch is bound to; empty: to none, and any works on it. */
  handlerVersion: string;
  requestId: Buffer;
  state: BatchState;
  /** Every item is counted or dead-lettered. */
  complete: boolean;
  /** Nothing changes any more, unless the batch's poison is redriven. */
  over: boolean;
  created: Date;
  completed?: Date;
  /** The promised latency, and when it ends. */
  slaMs?: number;
  deadline?: Date;
  /** Later than promised, or than promised by now; 0: it is not late. */
  lateByMs: number;
  /** It is open, and at its pace so far it will be late. */
  atRisk: boolean;
  flow: Flow;
  /** Counted: aggregated + rejected + deadLettered. */
  transactions: number;
  aggregated: number;
  rejected: number;
  deadLettered: number;
  items: number;
  itemsDead: number;
  attempts: number;
  seconds: number;
  /** The sentence why it waits, since when, and what to do; empty: it goes on. */
  problem: string;
  /** Of a cancelled batch: why; may be empty. */
  cancelReason: string;
  /** W3C trace that all work on the batch belongs to; empty: it has none. */
  traceparent: string;
  /** As they were submitted. */
  labels: Record<string, string>;
  /** In a list: why the counts are not known, and zero; empty: they are. */
  countsProblem: string;
  /** The batch whose rejections it retries; 0: it is no retry, or that one is deleted. */
  retryOf: number;
  /** The batches that retry its rejections: the newest 100. */
  retriedIn: number[];
}

const STATES: Record<string, BatchState> = {
  BATCH_STATE_OPEN: "open",
  BATCH_STATE_SEALED: "sealed",
  BATCH_STATE_COMPLETE: "complete",
  BATCH_STATE_CANCELLED: "cancelled",
};

export function toBatch(status: BatchStatus__Output): Batch {
  const state = STATES[status.state] ?? "unknown";
  const flow = status.progress;
  return {
    number: toNumber(status.batch),
    revision: toNumber(status.revision),
    job: status.job,
    jobRevision: status.jobRevision,
    handlerVersion: status.handlerVersion,
    requestId: status.requestId,
    state,
    complete: status.complete,
    over: status.complete || state === "complete" || state === "cancelled",
    created: toDate(status.created ?? { seconds: 0, nanos: 0 }),
    completed: status.completed ? toDate(status.completed) : undefined,
    slaMs: status.sla ? toMilliseconds(status.sla) : undefined,
    deadline: status.deadline ? toDate(status.deadline) : undefined,
    lateByMs: status.lateBy ? toMilliseconds(status.lateBy) : 0,
    atRisk: status.atRisk,
    flow: {
      read: toNumber(flow?.read ?? 0), queued: toNumber(flow?.queued ?? 0),
      processed: toNumber(flow?.processed ?? 0), committed: toNumber(flow?.committed ?? 0), split: flow?.split ?? 0,
    },
    transactions: toNumber(status.transactions),
    aggregated: toNumber(status.aggregated),
    rejected: toNumber(status.rejected),
    deadLettered: toNumber(status.deadLettered),
    items: toNumber(status.items),
    itemsDead: toNumber(status.itemsDead),
    attempts: toNumber(status.attempts),
    seconds: status.seconds,
    problem: status.problem,
    cancelReason: status.cancelReason,
    traceparent: status.traceparent,
    labels: { ...status.labels },
    countsProblem: status.countsProblem,
    retryOf: toNumber(status.retryOf),
    retriedIn: status.retriedIn.map(toNumber),
  };
}
