// SPDX-License-Identifier: Apache-2.0

// Calls as promises and iterators.
import type * as grpc from "@grpc/grpc-js";

import { fromRpc, MusterError } from "./errors";

/** A unary call as a promise; its failure is a MusterError. */
export function ask<Answer>(call: (done: (error: grpc.ServiceError | null, answer?: Answer) => void) => unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    call((error, answer) => (error !== null || answer === undefined ? reject(fromRpc(error)) : resolve(answer)));
  });
}

/** What a stream answers, to its end; leaving the loop cancels it. */
export async function* hear<Answer>(stream: grpc.ClientReadableStream<Answer>, signal?: AbortSignal): AsyncGenerator<Answer> {
  stream.on("error", () => {}); // the iteration throws it; what comes later is of no interest
  const cancel = (): void => stream.cancel();
  signal?.addEventListener("abort", cancel);
  try {
    yield* stream as AsyncIterable<Answer>;
  } catch (error) {
    throw fromRpc(error);
  } finally {
    signal?.removeEventListener("abort", cancel);
    stream.cancel();
  }
}

/** Of an answer, what every server says. */
export function present<Value>(value: Value | null): Value {
  if (value === null) throw new MusterError("INTERNAL", "the server's answer is empty");
  return value;
}
