// SPDX-License-Identifier: Apache-2.0

// What a Client does with schedules.
import { randomUUID } from "node:crypto";

import type * as grpc from "@grpc/grpc-js";

import type { CreateScheduleResponse__Output } from "./generated/muster/v1/CreateScheduleResponse";
import type { GetScheduleResponse__Output } from "./generated/muster/v1/GetScheduleResponse";
import type { ListSchedulesResponse__Output } from "./generated/muster/v1/ListSchedulesResponse";
import type { PauseScheduleResponse__Output } from "./generated/muster/v1/PauseScheduleResponse";
import type { ResumeScheduleResponse__Output } from "./generated/muster/v1/ResumeScheduleResponse";
import type { RunScheduleResponse__Output } from "./generated/muster/v1/RunScheduleResponse";
import type { UpdateScheduleRequest } from "./generated/muster/v1/UpdateScheduleRequest";
import type { UpdateScheduleResponse__Output } from "./generated/muster/v1/UpdateScheduleResponse";
import { ask } from "./ask";
import type { Batch } from "./batch";
import { opened, Source } from "./content";
import { toNumber, v1 } from "./protos";
import { Schedule, ScheduleOptions, toSchedule, toSpec } from "./schedule";

// What a schedule's batches may consist of, as ScheduleService.CreateSchedule says.
const MAX_CONTENT_BYTES = 3 << 20;

/** The base of Client. */
export abstract class ScheduleClient {
  protected abstract readonly schedules: InstanceType<typeof v1.ScheduleService>;
  protected abstract limits(): grpc.CallOptions;
  abstract get(batch: number): Promise<Batch>;

  /**
   * Has batches of `content`, at most 3 MiB, submitted by `cron`, or once, `at` a time. The same call again changes
   * nothing.
   *
   * ALREADY_EXISTS: another schedule has the name. INVALID_ARGUMENT: no schedule can be so; `violations` names the
   * field.
   */
  async createSchedule(name: string, job: string, content: Source, options: ScheduleOptions): Promise<Schedule> {
    const request = { spec: toSpec(name, job, options), content: await whole(content) };
    const { schedule } = await ask<CreateScheduleResponse__Output>(
      (done) => this.schedules.createSchedule(request, this.limits(), done));
    return toSchedule(schedule);
  }

  /**
   * Changes all but the content of a schedule: what is not named is as in a new one, not as before. It goes on with its
   * next occurrence, and what came before is not made up for. The same call again changes nothing.
   *
   * ABORTED: it is not at `expectedRevision`. FAILED_PRECONDITION: it was to occur once, and has ended. UNAVAILABLE: an
   * occurrence is being submitted; try again. Otherwise it fails as createSchedule.
   */
  async updateSchedule(name: string, job: string,
    { expectedRevision, ...options }: ScheduleOptions & { expectedRevision?: number }): Promise<Schedule> {
    const request: UpdateScheduleRequest = { spec: toSpec(name, job, options) };
    if (expectedRevision !== undefined) request.expectedRevision = expectedRevision;
    const { schedule } = await ask<UpdateScheduleResponse__Output>(
      (done) => this.schedules.updateSchedule(request, this.limits(), done));
    return toSchedule(schedule);
  }

  /** Where the schedule stands. NOT_FOUND: there is none. */
  async getSchedule(name: string): Promise<Schedule> {
    const { schedule } = await ask<GetScheduleResponse__Output>(
      (done) => this.schedules.getSchedule({ name }, this.limits(), done));
    return toSchedule(schedule);
  }

  /** All schedules in order of name, asked for page by page. */
  async *listSchedules(): AsyncGenerator<Schedule, void, void> {
    for (let pageToken = ""; ;) {
      const page = await ask<ListSchedulesResponse__Output>(
        (done) => this.schedules.listSchedules({ pageToken }, this.limits(), done));
      yield* page.schedules.map(toSchedule);
      pageToken = page.nextPageToken;
      if (pageToken === "") return;
    }
  }

  /** Has it submit nothing until it is resumed. */
  async pauseSchedule(name: string): Promise<Schedule> {
    const { schedule } = await ask<PauseScheduleResponse__Output>(
      (done) => this.schedules.pauseSchedule({ name }, this.limits(), done));
    return toSchedule(schedule);
  }

  /** Has it go on with its next occurrence; what it left out is not made up for. */
  async resumeSchedule(name: string): Promise<Schedule> {
    const { schedule } = await ask<ResumeScheduleResponse__Output>(
      (done) => this.schedules.resumeSchedule({ name }, this.limits(), done));
    return toSchedule(schedule);
  }

  /** Submits a batch of it now. The same `runId` never makes a second one; without it, each call makes one. */
  async runSchedule(name: string, runId = `node-${randomUUID()}`): Promise<Batch> {
    const { batch } = await ask<RunScheduleResponse__Output>(
      (done) => this.schedules.runSchedule({ name, runId }, this.limits(), done));
    return this.get(toNumber(batch));
  }

  /** Its batches stay. */
  async deleteSchedule(name: string): Promise<void> {
    await ask<object>((done) => this.schedules.deleteSchedule({ name }, this.limits(), done));
  }
}

/** The content; of what is too long no more than what the server needs to refuse it. */
async function whole(content: Source): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (await opened(content, false)).pieces) {
    pieces.push(Buffer.from(piece.subarray(0, MAX_CONTENT_BYTES + 1))); // a copy: the caller may reuse its buffer
    bytes += piece.length;
    if (bytes > MAX_CONTENT_BYTES) break;
  }
  return Buffer.concat(pieces).subarray(0, MAX_CONTENT_BYTES + 1);
}
