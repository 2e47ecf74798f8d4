// SPDX-License-Identifier: Apache-2.0

// Calls: single records, and what became of them.
import type { CallResponse__Output } from "./generated/muster/v1/CallResponse";
import { OutputRecord, toColumns, toRecord } from "./output";
import { toNumber } from "./protos";

/** One record for a job: a line of its input format without a header, or texts by the names of its columns. */
export type CalledRecord = string | Record<string, string>;

/** How a record is called. */
export interface CallOptions {
  /**
   * With an id the call has a batch of its own, which the same id finds again: it counts once however often
   * it is tried, and is tried again while no server answers. Without one it is tried once.
   */
  requestId?: string;
}

/** What a job made of a record, which is counted at `line` of `batch`. */
export interface Answer {
  batch: number;
  line: number;
  /** The values of the records that the handler returned for it. */
  outputs: OutputRecord["values"][];
}

/** A called record is counted, and was rejected by the handler or, if `deadLettered`, given up. */
export class NotAccepted extends Error {
  override readonly name = "NotAccepted";

  constructor(readonly batch: number, readonly line: number, readonly reason: string,
    readonly deadLettered: boolean) {
    super(`line ${line} of batch ${batch} is ${deadLettered ? "dead-lettered" : "rejected"}: ${reason}`);
  }
}

export function toAnswer(response: CallResponse__Output): Answer {
  const batch = toNumber(response.batch);
  const line = toNumber(response.line);
  if (response.rejected) throw new NotAccepted(batch, line, response.rejected.reason, false);
  if (response.deadLettered) throw new NotAccepted(batch, line, response.deadLettered.cause, true);
  const columns = toColumns(response.accepted?.columns ?? []);
  return { batch, line, outputs: (response.accepted?.records ?? []).map((record) => toRecord(columns, record).values) };
}
