// SPDX-License-Identifier: Apache-2.0

// What a batch has rejected, once more.
import type { RetryRejectionsRequest } from "./generated/muster/v1/RetryRejectionsRequest";
import type { RetryRejectionsResponse__Output } from "./generated/muster/v1/RetryRejectionsResponse";
import { ask } from "./ask";
import { MusterError } from "./errors";
import { toNumber, v1 } from "./protos";

// What one call may name.
const LINES_AT_A_TIME = 1000;
// Of one call: an initiator reads all items that have one of up to 50,000 rejections.
const TIMEOUT_MS = 600_000;

/** A batch that retries transactions which another one rejected, or gave up. */
export interface RetriedBatch {
  batch: number;
  /** That it has of the other one. */
  transactions: number;
  /** It was submitted by this call. */
  isNew: boolean;
}

/** How rejections are retried. */
export interface RetryOptions {
  /** Of each call to the server, which takes 1,000 lines, or 50,000 transactions of all; 10 minutes. */
  timeoutMs?: number;
}

/** `lines` undefined: all. */
export async function retry(batches: InstanceType<typeof v1.BatchService>, batch: number, lines: number[] | undefined,
  { timeoutMs = TIMEOUT_MS }: RetryOptions): Promise<RetriedBatch[]> {
  if (lines?.length === 0) throw new TypeError("no line to retry; without lines, all are retried");
  const retried: RetriedBatch[] = [];
  try {
    for (let begin = 0; begin < (lines?.length ?? 1); begin += LINES_AT_A_TIME) {
      const request: RetryRejectionsRequest = {
        batch, lines: lines?.slice(begin, begin + LINES_AT_A_TIME) ?? [], all: lines === undefined };
      for (let more = true; more;) {
        const response = await ask<RetryRejectionsResponse__Output>(
          (done) => batches.retryRejections(request, { deadline: Date.now() + timeoutMs }, done));
        for (const { batch: made, transactions, isNew } of response.retries) {
          retried.push({ batch: toNumber(made), transactions: toNumber(transactions), isNew });
        }
        more = lines === undefined && response.more;
      }
    }
    return retried;
  } catch (error) {
    if (error instanceof MusterError) error.retried = retried;
    throw error;
  }
}
