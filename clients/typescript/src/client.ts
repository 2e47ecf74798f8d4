// SPDX-License-Identifier: Apache-2.0

// Client: submits batches to a mesh, follows them, and reads what was counted.
import { randomUUID } from "node:crypto";

import * as grpc from "@grpc/grpc-js";

import type { ApplyJobRequest } from "./generated/muster/v1/ApplyJobRequest";
import type { ApplyJobResponse__Output } from "./generated/muster/v1/ApplyJobResponse";
import type { CallResponse__Output } from "./generated/muster/v1/CallResponse";
import type { CancelBatchResponse__Output } from "./generated/muster/v1/CancelBatchResponse";
import type { CheckJobResponse__Output } from "./generated/muster/v1/CheckJobResponse";
import type { GetBatchResponse__Output } from "./generated/muster/v1/GetBatchResponse";
import type { GetOutputResponse__Output } from "./generated/muster/v1/GetOutputResponse";
import type { GetReceiptResponse__Output } from "./generated/muster/v1/GetReceiptResponse";
import type { ListBatchesResponse__Output } from "./generated/muster/v1/ListBatchesResponse";
import type { ListInstancesResponse__Output } from "./generated/muster/v1/ListInstancesResponse";
import type { SubmitHeader } from "./generated/muster/v1/SubmitHeader";
import { ask, hear, present } from "./ask";
import { Batch, BatchState, toBatch } from "./batch";
import { Answer, CalledRecord, CallOptions, toAnswer } from "./call";
import { CHANNEL_OPTIONS, checkedAddress, clientCredentials, PemFiles } from "./channel";
import { Content, opened, Source } from "./content";
import { MusterError } from "./errors";
import { FailedTransaction, FailureReader } from "./failures";
import { OutputColumn, OutputRecord, toColumns, toRecord } from "./output";
import { Limits, outOfTime, Patience } from "./patience";
import { toDuration, v1 } from "./protos";
import { Group, Receipt, ReportRow, toGroup, toReceipt, toRow } from "./report";
import { RetriedBatch, retry, RetryOptions } from "./retry";
import { ScheduleClient } from "./schedule_client";
import { SubmitProgress, Upload } from "./upload";

/**
 * Plaintext, unless a PEM file is named: `ca` has the roots that the servers' certificates must come from,
 * without it those of node are taken; `certificate` and `key` say who asks.
 */
export interface ClientOptions extends PemFiles {
  /** HOST:PORT of the controller that has the report; without it, the initiator is asked. */
  controller?: string;
  /** What a call takes at most, with its tries; 30 s. */
  timeoutMs?: number;
  /** Uploads and watches give up after so long without news; two minutes. */
  patienceMs?: number;
  /** Hears when an upload or a watch waits for its server; console.warn. */
  warn?: (message: string) => void;
}

/** A job as the mesh keeps it. */
export interface Job {
  name: string;
  revision: string;
  /** Results are decided otherwise than before; true for a new job. */
  revised: boolean;
  columns: string[];
  groups: Group[];
  /** Of the records that its handler may return. */
  outputs: OutputColumn[];
}

/** What may go with a submit. */
export interface Submission {
  /**
   * Names the submission: the same id never makes a second batch. Without it, a path or bytes name
   * themselves, as with `muster batch submit`; what can be read once is a new batch each time.
   */
  requestId?: string;
  /** The handler version that the batch is bound to; the one that the job has now. */
  handlerVersion?: string;
  tenant?: string;
  /** What this batch is promised instead of what its job promises. */
  slaMs?: number;
  /** The W3C trace that the batch belongs to, and what comes with it. */
  traceparent?: string;
  tracestate?: string;
  /** What list finds the batch by later: at most 16 names and values. */
  labels?: Record<string, string>;
  /** Is called whenever more is durable; what it throws ends the upload. */
  progress?: (progress: SubmitProgress) => void;
  signal?: AbortSignal;
}

/** What ends a watch early. */
export interface WatchOptions {
  /** Statuses up to this revision are known. */
  afterRevision?: number;
  /** DEADLINE_EXCEEDED: the batch was not over within it. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Which batches; of what is left out, all. */
export interface BatchFilter {
  job?: string;
  tenant?: string;
  states?: Exclude<BatchState, "unknown">[];
  /** Begun then or later. */
  since?: Date;
  /** Complete later than promised, or late by now. */
  late?: boolean;
  /** With all of these. */
  labels?: Record<string, string>;
  /** Also those that calls were made into; otherwise they are left out, unless `labels` names theirs. */
  calls?: boolean;
}

type AnyBatch = Batch | RetriedBatch | number;

function numberOf(batch: AnyBatch): number {
  if (typeof batch === "number") return batch;
  return "number" in batch ? batch.number : batch.batch;
}

/**
 * Talks to a mesh. To be closed.
 *
 * Every method fails with a MusterError. A call that is answered UNAVAILABLE is tried again for some
 * seconds; uploads and watches go on where they were cut off.
 */
export class Client extends ScheduleClient {
  private readonly credentials: grpc.ChannelCredentials;
  private readonly batches;
  private readonly calls;
  private readonly jobs;
  private readonly mesh;
  protected readonly schedules;

  /** `server` is an initiator's HOST:PORT; TypeError: it is not. It is connected to with the first call. */
  constructor(server = "localhost:7700", private readonly options: ClientOptions = {}) {
    super();
    for (const address of [server, options.controller ?? server]) checkedAddress(address);
    this.credentials = clientCredentials(options);
    this.batches = new v1.BatchService(server, this.credentials, CHANNEL_OPTIONS);
    this.calls = new v1.CallService(server, this.credentials, CHANNEL_OPTIONS);
    this.jobs = new v1.JobService(server, this.credentials, CHANNEL_OPTIONS);
    this.mesh = new v1.MeshService(server, this.credentials, CHANNEL_OPTIONS);
    this.schedules = new v1.ScheduleService(server, this.credentials, CHANNEL_OPTIONS);
  }

  close(): void {
    for (const stub of [this.batches, this.calls, this.jobs, this.mesh, this.schedules]) stub.close();
  }

  /**
   * Makes a job of its definition, the text of a job file, or replaces its definition.
   *
   * INVALID_ARGUMENT: it has mistakes, which the error's `problems` list. ABORTED: the job is not at
   * `expectedRevision`; "" expects that there is none.
   */
  async applyJob(definition: string, { expectedRevision }: { expectedRevision?: string } = {}): Promise<Job> {
    const request: ApplyJobRequest = { definition };
    if (expectedRevision !== undefined) request.expectedRevision = expectedRevision;
    try {
      const { job, revised } = await ask<ApplyJobResponse__Output>(
        (done) => this.jobs.applyJob(request, this.limits(), done));
      return {
        name: job?.name ?? "", revision: job?.revision ?? "", revised,
        columns: job?.schema?.columns ?? [], groups: (job?.schema?.groups ?? []).map(toGroup),
        outputs: toColumns(job?.schema?.outputs ?? []),
      };
    } catch (error) {
      throw await this.explained(error, definition);
    }
  }

  /**
   * Uploads a batch, and returns when it is durable as a whole. Of what was read of the content, at most some
   * 10 MiB are kept.
   *
   * The same `requestId` never makes a second batch: submit again after a crash, and the upload goes on
   * where the initiator's disk ends. What the content cannot be read for is thrown as it is.
   */
  async submit(job: string, content: Source, submission: Submission = {}): Promise<Batch> {
    const source = await opened(content, submission.requestId === undefined);
    const id = submission.requestId ?? (source.digest === undefined ? `node:${randomUUID()}` : `${job}:${source.digest}`);
    const header: SubmitHeader = {
      job, requestId: Buffer.from(id), tenant: submission.tenant ?? "", sizeHint: source.size ?? 0,
      traceparent: submission.traceparent ?? "", tracestate: submission.tracestate ?? "",
      labels: submission.labels ?? {},
    };
    if (submission.handlerVersion !== undefined) header.handlerVersion = submission.handlerVersion;
    if (submission.slaMs !== undefined) header.sla = toDuration(submission.slaMs);
    const kept = await Content.of(source.pieces);
    const upload = new Upload(kept, header, source.size, submission.progress, submission.signal);
    try {
      return toBatch(await upload.run(this.batches, this.patience(this.options.patienceMs ?? 120_000, submission)));
    } finally {
      await kept.close();
    }
  }

  /**
   * The batch at once and whenever it has changed, until it is complete or cancelled; `problem` is the
   * sentence why it waits. Each has a higher revision than the one before.
   */
  async *watch(batch: AnyBatch, options: WatchOptions = {}): AsyncGenerator<Batch, void, void> {
    const deadline = options.timeoutMs === undefined ? undefined : Date.now() + options.timeoutMs;
    const patience = this.patience(this.options.patienceMs ?? 120_000, { deadline, signal: options.signal });
    let afterRevision = options.afterRevision ?? 0;
    for (;;) {
      let trouble: unknown = new MusterError("UNAVAILABLE", "the initiator ended the watch early");
      options.signal?.throwIfAborted();
      try {
        const request = { batch: numberOf(batch), afterRevision };
        let over = false;
        for await (const { status } of hear(this.batches.watchBatch(request, deadline === undefined ? {} : { deadline }),
          options.signal)) {
          if (status === null) continue;
          patience.refresh();
          const now = toBatch(status);
          afterRevision = now.revision;
          over = now.over;
          yield now;
        }
        if (over) return;
      } catch (error) {
        trouble = error;
      }
      await patience.waitAfter(trouble, "the watch");
    }
  }

  /** The batch when it is complete or cancelled. */
  async wait(batch: AnyBatch, options: WatchOptions = {}): Promise<Batch> {
    let last: Batch | undefined;
    for await (last of this.watch(batch, options));
    if (last === undefined) throw outOfTime(); // a watch ends with a status
    return last;
  }

  /**
   * Submits one record, waits until it is counted, and gives what the handler returned for it. Records of calls
   * at a time share a batch.
   *
   * NotAccepted: it is counted, and was rejected or given up. After another error that is none of
   * INVALID_ARGUMENT, NOT_FOUND and RESOURCE_EXHAUSTED, it may be counted all the same.
   */
  async call(job: string, record: CalledRecord, { requestId }: CallOptions = {}): Promise<Answer> {
    const limits = this.limits();
    const patience = this.patience(this.options.timeoutMs ?? 30_000, { deadline: Number(limits.deadline) });
    const request = {
      job, requestId: Buffer.from(requestId ?? ""),
      ...(typeof record === "string" ? { record: Buffer.from(record) } : { fields: record }),
    };
    for (;;) {
      try {
        return toAnswer(await ask<CallResponse__Output>((done) => this.calls.call(request, limits, done)));
      } catch (trouble) {
        if (!requestId) throw trouble; // an empty one is none
        await patience.waitAfter(trouble, "the call");
      }
    }
  }

  /** Where the batch stands now. */
  async get(batch: AnyBatch): Promise<Batch> {
    const { status } = await ask<GetBatchResponse__Output>(
      (done) => this.batches.getBatch({ batch: numberOf(batch) }, this.limits(), done));
    return toBatch(present(status));
  }

  /** Batches, newest first, asked for page by page. */
  async *list(filter: BatchFilter = {}): AsyncGenerator<Batch, void, void> {
    const states = (filter.states ?? []).map((state) => `BATCH_STATE_${state.toUpperCase()}` as "BATCH_STATE_OPEN");
    const since = filter.since === undefined ? null : toDuration(filter.since.getTime()); // a Timestamp looks the same
    const { job = "", tenant = "", late = false, labels = {}, calls = false } = filter;
    for (let pageToken = ""; ;) {
      const page = await ask<ListBatchesResponse__Output>(
        (done) => this.batches.listBatches(
          { job, tenant, states, since, late, labels, calls, pageToken }, this.limits(), done));
      yield* page.batches.map(toBatch);
      pageToken = page.nextPageToken;
      if (pageToken === "") return;
    }
  }

  /** Gives a batch up; what was counted stays in the report. FAILED_PRECONDITION: it is complete. */
  async cancel(batch: AnyBatch, reason = ""): Promise<Batch> {
    const { status } = await ask<CancelBatchResponse__Output>(
      (done) => this.batches.cancelBatch({ batch: numberOf(batch), reason }, this.limits(), done));
    return toBatch(present(status));
  }

  /**
   * Where every transaction went; that of a cancelled batch has "state cancelled" and says what is counted
   * so far. FAILED_PRECONDITION: the batch is neither complete nor cancelled. DATA_LOSS: the text does not
   * have its checksum.
   */
  async receipt(batch: AnyBatch): Promise<Receipt> {
    const { text, checksum } = await ask<GetReceiptResponse__Output>(
      (done) => this.batches.getReceipt({ batch: numberOf(batch) }, this.limits(), done));
    return toReceipt(text, checksum);
  }

  /**
   * All rows of a group, as of one moment, in the byte order of their keys. NOT_FOUND: no such batch, or
   * no such group. UNAVAILABLE: no controller is there.
   */
  async report(batch: AnyBatch, group: string): Promise<ReportRow[]> {
    const stub = await this.controller();
    try {
      const rows: ReportRow[] = [];
      let schema: Group | undefined;
      // A long report takes longer than other calls; who is not patient still waits as for those.
      const longest = Math.max(this.options.timeoutMs ?? 30_000, this.options.patienceMs ?? 120_000);
      const deadline = Date.now() + longest;
      for await (const part of hear(stub.getReport({ batch: numberOf(batch), group }, { deadline }))) {
        if (part.part === "schema" && part.schema) schema = toGroup(part.schema);
        for (const row of part.rows?.rows ?? []) {
          if (schema !== undefined) rows.push(toRow(schema, row));
        }
      }
      return rows;
    } finally {
      stub.close();
    }
  }

  /**
   * The transactions that were rejected, in the order of item and line, with their records, asked for page by
   * page: at most 3 MiB of rows, and as many of records, are kept at a time. NOT_FOUND: no such batch.
   * UNAVAILABLE: no controller is there.
   */
  rejections(batch: AnyBatch): AsyncGenerator<FailedTransaction, void, void> {
    return this.failures(batch, (reader) => reader.rejections());
  }

  /** The transactions of items that were given up, likewise; the reason is what gave up the item. */
  deadLetters(batch: AnyBatch): AsyncGenerator<FailedTransaction, void, void> {
    return this.failures(batch, (reader) => reader.deadLetters());
  }

  /**
   * Submits what a complete batch rejected once more, as new batches of its job: the records that begin at
   * `lines`, or all that was not retried yet, also items that were given up as wholes. Each is retried once: a
   * second call with the same lines gives the batch that has them already.
   *
   * NOT_FOUND: no such batch, or it rejected nothing at a line. FAILED_PRECONDITION: the batch is not complete,
   * its content is deleted, or nothing is left to retry. UNAVAILABLE, RESOURCE_EXHAUSTED: call again, and it goes
   * on. The error's `retried` are the batches that were there before it.
   */
  retryRejections(batch: AnyBatch, lines?: number[], options: RetryOptions = {}): Promise<RetriedBatch[]> {
    return retry(this.batches, numberOf(batch), lines, options);
  }

  private async *failures(batch: AnyBatch, read: (reader: FailureReader) => AsyncGenerator<FailedTransaction, void, void>):
  AsyncGenerator<FailedTransaction, void, void> {
    const stub = await this.controller();
    try {
      yield* read(new FailureReader(numberOf(batch), this.batches, stub, () => this.limits()));
    } finally {
      stub.close();
    }
  }

  /**
   * The records that the handler returned for a complete batch, in the order of the input, asked for page by
   * page: about 1 MiB is kept at a time.
   *
   * NOT_FOUND: no such batch, or its job has no outputs. FAILED_PRECONDITION: the batch is not complete, or
   * is cancelled. ABORTED: a redrive has changed the batch; begin again. A page that is answered UNAVAILABLE, or
   * for which no controller is listed, as while one restarts, is asked for again for `patienceMs`.
   */
  async *output(batch: AnyBatch): AsyncGenerator<OutputRecord, void, void> {
    const patience = this.patience(this.options.patienceMs ?? 120_000, {});
    let pageToken = "";
    for (;;) {
      let page: GetOutputResponse__Output;
      let stub: InstanceType<typeof v1.ReportService> | undefined;
      try {
        const report = await this.controller(patience);
        stub = report;
        do {
          page = await ask<GetOutputResponse__Output>(
            (done) => report.getOutput({ batch: numberOf(batch), pageToken }, this.limits(), done));
          patience.refresh();
          const columns = toColumns(page.columns);
          for (const record of page.records) yield toRecord(columns, record);
          pageToken = page.nextPageToken;
        } while (pageToken !== "");
        return;
      } catch (trouble) {
        await patience.waitAfter(trouble, "the output");
      } finally {
        stub?.close();
      }
    }
  }

  protected limits(): grpc.CallOptions {
    return { deadline: Date.now() + (this.options.timeoutMs ?? 30_000) };
  }

  private patience(milliseconds: number, limits: Limits): Patience {
    return new Patience(milliseconds, this.options.warn ?? ((message) => console.warn(message)), limits);
  }

  /** A stub of the controller that has the report, to be closed; `patience` is for one that is not listed. */
  private async controller(patience = this.patience(this.options.timeoutMs ?? 30_000, {})):
  Promise<InstanceType<typeof v1.ReportService>> {
    const address = this.options.controller ?? (await this.findController(patience));
    return new v1.ReportService(address, this.credentials, CHANNEL_OPTIONS);
  }

  /** An initiator that was just started hears of it within some seconds. */
  private async findController(patience: Patience): Promise<string> {
    for (;;) {
      const { instances } = await ask<ListInstancesResponse__Output>(
        (done) => this.mesh.listInstances({ role: "ROLE_CONTROLLER" }, this.limits(), done));
      const found = instances.find(({ info, leaving }) => info?.address && !leaving);
      if (found?.info) return found.info.address;
      await patience.waitAfter(new MusterError("UNAVAILABLE",
        "the initiator has heard of no controller: start one, or name the one that has the report"), "the report");
    }
  }

  /** Adds the mistakes one by one. Where they cannot be asked for, `refused` says enough. */
  private async explained(refused: unknown, definition: string): Promise<unknown> {
    if (!(refused instanceof MusterError) || refused.code !== "INVALID_ARGUMENT") return refused;
    try {
      const { problems } = await ask<CheckJobResponse__Output>(
        (done) => this.jobs.checkJob({ definition }, this.limits(), done));
      refused.problems = problems.map(({ line, column, message }) => ({ line, column, message }));
    } catch {
      // See above.
    }
    return refused;
  }
}
