// SPDX-License-Identifier: Apache-2.0

// The transactions of a batch that are not in its results, with their records.
import type * as grpc from "@grpc/grpc-js";

import type { DeadLetter__Output } from "./generated/muster/v1/DeadLetter";
import type { ListDeadLettersResponse__Output } from "./generated/muster/v1/ListDeadLettersResponse";
import type { ListRejectionsRequest } from "./generated/muster/v1/ListRejectionsRequest";
import type { ListRejectionsResponse__Output } from "./generated/muster/v1/ListRejectionsResponse";
import type { ReadRecordsResponse__Output } from "./generated/muster/v1/ReadRecordsResponse";
import type { RejectedTransaction__Output } from "./generated/muster/v1/RejectedTransaction";
import type { SubmittedRecord__Output } from "./generated/muster/v1/SubmittedRecord";
import { ask } from "./ask";
import { Code, MusterError } from "./errors";
import { toNumber, v1 } from "./protos";

// Rejections are asked for a thousand at a time; a dead letter has many transactions.
const REJECTIONS_AT_A_TIME = 1000;
const DEAD_LETTERS_AT_A_TIME = 100;

// Why records cannot be read, though the report says of which transactions: asking again is no use. An
// initiator of an older muster does not know the call.
const NO_RECORDS: Code[] = ["FAILED_PRECONDITION", "NOT_FOUND", "DATA_LOSS", "PERMISSION_DENIED", "UNIMPLEMENTED"];

/** A transaction that a batch rejected, or one of an item that was given up. */
export interface FailedTransaction {
  /** Index of its work item. */
  item: number;
  /** Of the input, from 1; 0: all of the item, whose content is deleted. */
  line: number;
  reason: string;
  /** As it was submitted; null: it is not there any more, or too long. */
  record: Buffer | null;
  /** The batch that retries it; 0: none. */
  retriedIn: number;
  /** Of a batch that is a retry: its line in the batch that it retries; 0: none. */
  retryOfLine: number;
}

interface ItemLines {
  item: string;
  lines: string[];
  afterLine: string;
}

/** Reads one batch, page by page. */
export class FailureReader {
  private hasRecords = true;

  constructor(private readonly batch: number, private readonly batches: InstanceType<typeof v1.BatchService>,
    private readonly report: InstanceType<typeof v1.ReportService>, private readonly limits: () => grpc.CallOptions) {}

  async *rejections(): AsyncGenerator<FailedTransaction, void, void> {
    for (let after: ListRejectionsRequest["after"] = null; ;) {
      const request: ListRejectionsRequest = { batch: this.batch, after, max: REJECTIONS_AT_A_TIME };
      const { rejections } = await ask<ListRejectionsResponse__Output>(
        (done) => this.report.listRejections(request, this.limits(), done));
      const last = rejections.at(-1);
      if (last === undefined) return;
      for (let rows = rejections; rows.length > 0;) {
        const { records, count } = await this.recordsOf(rows);
        for (const told of rows.slice(0, count)) {
          yield { item: toNumber(told.item), line: toNumber(told.line), reason: told.reason,
            record: records.get(placeOf(told)) ?? null, retriedIn: toNumber(told.retriedIn),
            retryOfLine: toNumber(told.retryOfLine) };
        }
        rows = rows.slice(count);
      }
      after = { item: last.item, line: last.line };
    }
  }

  async *deadLetters(): AsyncGenerator<FailedTransaction, void, void> {
    for (let from = 0; ;) {
      const { items } = await ask<ListDeadLettersResponse__Output>((done) => this.report.listDeadLetters(
        { batch: this.batch, from, max: DEAD_LETTERS_AT_A_TIME }, this.limits(), done));
      if (items.length === 0) return;
      for (const item of items) {
        yield* this.transactionsOf(item);
        from = toNumber(item.item) + 1;
      }
    }
  }

  private async *transactionsOf({ item, cause, retriedIn }: DeadLetter__Output): AsyncGenerator<FailedTransaction, void, void> {
    const wanted: ItemLines = { item, lines: [], afterLine: "0" };
    for (;;) {
      const response = await this.read([wanted]);
      if (response === undefined) {
        yield { item: toNumber(item), line: 0, reason: cause, record: null, retriedIn: toNumber(retriedIn),
          retryOfLine: 0 };
        return;
      }
      for (const record of response.records) {
        yield { item: toNumber(item), line: toNumber(record.line), reason: cause, record: bytesOf(record),
          retriedIn: toNumber(retriedIn), retryOfLine: 0 };
        wanted.afterLine = record.line;
      }
      if (!response.more) return;
    }
  }

  /**
   * The records of the first rows, by place, as many as fit into a message, and how many rows these are. They come
   * in the order of the rows.
   */
  private async recordsOf(rows: RejectedTransaction__Output[]):
  Promise<{ records: Map<string, Buffer | null>; count: number }> {
    const wanted: ItemLines[] = [];
    for (const { item, line } of rows) {
      if (wanted.at(-1)?.item !== item) wanted.push({ item, lines: [], afterLine: "0" });
      wanted.at(-1)?.lines.push(line);
    }
    const response = await this.read(wanted);
    const records = new Map((response?.records ?? []).map((record) => [placeOf(record), bytesOf(record)]));
    let count = rows.length;
    if (response?.more) {
      while (count > 0 && !records.has(placeOf(rows[count - 1]))) count -= 1;
      if (count === 0) throw new MusterError("INTERNAL", "the server answers other records than it was asked for");
    }
    return { records, count };
  }

  private async read(items: ItemLines[]): Promise<ReadRecordsResponse__Output | undefined> {
    if (!this.hasRecords) return undefined;
    try {
      return await ask<ReadRecordsResponse__Output>(
        (done) => this.batches.readRecords({ batch: this.batch, items }, this.limits(), done));
    } catch (error) {
      if (!(error instanceof MusterError) || !NO_RECORDS.includes(error.code)) throw error;
      this.hasRecords = false;
      return undefined;
    }
  }
}

function placeOf({ item, line }: { item: string; line: string }): string {
  return `${item} ${line}`;
}

function bytesOf({ oversized, record }: SubmittedRecord__Output): Buffer | null {
  return oversized ? null : record;
}
