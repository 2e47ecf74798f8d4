// SPDX-License-Identifier: Apache-2.0

// What a call can fail with, and its details.
import * as grpc from "@grpc/grpc-js";

import { details, toMilliseconds } from "./protos";
import type { RetriedBatch } from "./retry";

/** What is wrong with a field of a request, such as "header.request_id". */
export interface FieldViolation {
  field: string;
  description: string;
}

/** A mistake in a job's definition; line and column begin at 1. */
export interface JobProblem {
  line: number;
  column: number;
  message: string;
}

/** What the server said for programs. */
export interface ErrorDetails {
  /** Which fields of the request are refused, and why. */
  violations: FieldViolation[];
  /** Wait at least so long before the next try. */
  retryAfterMs?: number;
  /** Such as "NO_SUCH_JOB"; docs/api.md has them. */
  reason?: string;
  /** What goes with the reason. */
  facts: Record<string, string>;
}

/** The name of a status of gRPC, such as "NOT_FOUND". */
export type Code = keyof typeof grpc.status;

export function codeNamed(code: number): Code {
  return (grpc.status[code] ?? "UNKNOWN") as Code;
}

/** A call has failed. docs/api.md says which code comes when. */
export class MusterError extends Error implements ErrorDetails {
  override readonly name = "MusterError";
  readonly violations: FieldViolation[];
  readonly retryAfterMs?: number;
  readonly reason?: string;
  readonly facts: Record<string, string>;
  /** Of a job that applyJob was refused: its mistakes. */
  problems: JobProblem[] = [];
  /** What retryRejections had retried when it failed. */
  retried: RetriedBatch[] = [];

  /** `said` is the message of the server. */
  constructor(readonly code: Code, readonly said: string, more: Partial<ErrorDetails> = {}) {
    super(`${code}: ${said}`);
    this.violations = more.violations ?? [];
    this.retryAfterMs = more.retryAfterMs;
    this.reason = more.reason;
    this.facts = more.facts ?? {};
  }
}

/** What gRPC emits, or undefined for errors of other makes. */
function asServiceError(error: unknown): grpc.ServiceError | undefined {
  const found = error as Partial<grpc.ServiceError> | null;
  const is = error instanceof Error && typeof found?.code === "number" && typeof found.details === "string";
  return is ? (found as grpc.ServiceError) : undefined;
}

// What node says in some moments of a connection that breaks, which gRPC takes for a mistake of the client.
const CONNECTION_BROKE = "triggered by internal client error: Session closed";

/** The MusterError of a call that gRPC has ended; any other error as it is. */
export function fromRpc(error: unknown): Error {
  const failed = asServiceError(error);
  if (failed === undefined) return error instanceof Error ? error : new Error(String(error));
  const broke = failed.code === grpc.status.INTERNAL && failed.details.includes(CONNECTION_BROKE);
  return new MusterError(broke ? "UNAVAILABLE" : codeNamed(failed.code), failed.details, unpack(failed.metadata?.get("grpc-status-details-bin")[0]));
}

function unpack(packed: grpc.MetadataValue | undefined): Partial<ErrorDetails> {
  const found: Partial<ErrorDetails> = {};
  if (!Buffer.isBuffer(packed)) return found;
  try {
    for (const { type_url: type, value } of details.status.read(packed).details) {
      const kind = type.slice(type.lastIndexOf("/") + 1);
      if (kind === "google.rpc.BadRequest") {
        found.violations = details.badRequest.read(value).fieldViolations.map(
          ({ field, description }) => ({ field, description }));
      } else if (kind === "google.rpc.RetryInfo") {
        const delay = details.retryInfo.read(value).retryDelay;
        if (delay !== null) found.retryAfterMs = toMilliseconds(delay);
      } else if (kind === "google.rpc.ErrorInfo") {
        const info = details.errorInfo.read(value);
        if (info.domain === "muster") Object.assign(found, { reason: info.reason, facts: { ...info.metadata } });
      }
    }
  } catch {
    // A proxy's, perhaps: code and message are there all the same.
  }
  return found;
}
