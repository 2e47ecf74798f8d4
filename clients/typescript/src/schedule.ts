// SPDX-License-Identifier: Apache-2.0

// What a schedule looks like to a client.
import type { Schedule__Output } from "./generated/muster/v1/Schedule";
import type { ScheduleSpec } from "./generated/muster/v1/ScheduleSpec";
import { present } from "./ask";
import { toDate, toDuration, toMilliseconds, toNumber } from "./protos";

/**
 * What becomes of occurrences whose time passed while no initiator was there: they are missed, the last of them is
 * submitted, or each is, in order. "unknown" is a rule of a newer muster.
 */
export type CatchUp = "none" | "once" | "all" | "unknown";

/** When a schedule occurs: by `cron`, or once, `at` a time. And what its batches are submitted with. */
export interface ScheduleOptions {
  /** Five fields, as the clock of `timeZone` shows them. */
  cron?: string;
  /** Such as "Europe/Berlin"; UTC. */
  timeZone?: string;
  at?: Date;
  /** "once". */
  catchUp?: Exclude<CatchUp, "unknown">;
  /** As those of a Submission, for each batch. */
  handlerVersion?: string;
  tenant?: string;
  slaMs?: number;
  labels?: Record<string, string>;
}

/** A schedule as it stood when it was asked for. */
export interface Schedule {
  name: string;
  /** New for each creation. */
  id: string;
  /** Of all but its content: 1 when it is made, and one more with each update. */
  revision: number;
  job: string;
  /** Empty: it occurs once, at `at`. */
  cron: string;
  /** Of `cron`; empty: UTC. */
  timeZone: string;
  at?: Date;
  catchUp: CatchUp;
  handlerVersion?: string;
  tenant: string;
  slaMs?: number;
  labels: Record<string, string>;
  contentBytes: number;
  created: Date;
  paused: boolean;
  /** Undefined: there is none, or it is paused. */
  next?: Date;
  /** The last occurrence that was submitted. */
  last?: Date;
  /** 0: none. */
  lastBatch: number;
  /** Why it did not do what it should; empty: nothing is wrong. */
  problem: string;
  /** Occurrences, since it was created. */
  submitted: number;
  missed: number;
  failed: number;
  /** Of one with `at`: when that was decided. */
  ended?: Date;
}

const RULES: Record<string, CatchUp> = {
  CATCH_UP_UNSPECIFIED: "once", CATCH_UP_NONE: "none", CATCH_UP_ONCE: "once", CATCH_UP_ALL: "all",
};

export function toSpec(name: string, job: string, options: ScheduleOptions): ScheduleSpec {
  const { cron = "", at, timeZone = "", catchUp = "once", tenant = "", labels = {} } = options;
  if (cron !== "" && at !== undefined) throw new TypeError("a schedule occurs by cron or at a time, not both");
  const spec: ScheduleSpec = { name, job, timeZone, tenant, labels,
    catchUp: `CATCH_UP_${catchUp.toUpperCase()}` as "CATCH_UP_ONCE" };
  if (at === undefined) spec.cron = cron;
  else spec.at = toDuration(at.getTime()); // a Timestamp looks the same
  if (options.handlerVersion !== undefined) spec.handlerVersion = options.handlerVersion;
  if (options.slaMs !== undefined) spec.sla = toDuration(options.slaMs);
  return spec;
}

export function toSchedule(found: Schedule__Output | null): Schedule {
  const { spec, ...told } = present(found);
  const { name, job, cron, timeZone, at, catchUp, handlerVersion, tenant, sla, labels } = present(spec);
  const date = (stamp: typeof told.next): Date | undefined => (stamp === null ? undefined : toDate(stamp));
  return {
    name, id: told.id, revision: toNumber(told.revision), job, cron: cron ?? "", timeZone, at: date(at ?? null), catchUp: RULES[catchUp] ?? "unknown",
    handlerVersion, tenant, slaMs: sla === null ? undefined : toMilliseconds(sla), labels: { ...labels },
    contentBytes: toNumber(told.contentBytes), created: toDate(present(told.created)), paused: told.paused,
    next: date(told.next), last: date(told.last), lastBatch: toNumber(told.lastBatch), problem: told.problem,
    submitted: toNumber(told.submitted), missed: toNumber(told.missed), failed: toNumber(told.failed),
    ended: date(told.ended),
  };
}
