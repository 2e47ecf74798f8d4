// SPDX-License-Identifier: Apache-2.0

// An initiator that does what a test tells it, for what a real one does only in bad moments.
import * as grpc from "@grpc/grpc-js";
import { createXXHash128 } from "hash-wasm";

import type { GetReportResponse } from "../src/generated/muster/v1/GetReportResponse";
import type { ListRejectionsRequest__Output } from "../src/generated/muster/v1/ListRejectionsRequest";
import type { ReadRecordsRequest__Output } from "../src/generated/muster/v1/ReadRecordsRequest";
import type { ReadRecordsResponse } from "../src/generated/muster/v1/ReadRecordsResponse";
import type { RejectedTransaction } from "../src/generated/muster/v1/RejectedTransaction";
import type { RetryRejectionsRequest__Output } from "../src/generated/muster/v1/RetryRejectionsRequest";
import type { RetryRejectionsResponse } from "../src/generated/muster/v1/RetryRejectionsResponse";
import type { SubmitHeader__Output } from "../src/generated/muster/v1/SubmitHeader";
import type { SubmitRequest__Output } from "../src/generated/muster/v1/SubmitRequest";
import type { SubmitResponse } from "../src/generated/muster/v1/SubmitResponse";
import type { WatchBatchRequest__Output } from "../src/generated/muster/v1/WatchBatchRequest";
import type { WatchBatchResponse } from "../src/generated/muster/v1/WatchBatchResponse";
import { v1 } from "../src/protos";

type SubmitStream = grpc.ServerDuplexStream<SubmitRequest__Output, SubmitResponse>;

export function failure(code: grpc.status, details: string, packed?: Buffer): grpc.ServiceError {
  const metadata = new grpc.Metadata();
  if (packed !== undefined) metadata.set("grpc-status-details-bin", packed);
  return Object.assign(new Error(details), { code, details, metadata });
}

export const breakOff = (): grpc.ServiceError => failure(grpc.status.UNAVAILABLE, "the connection broke");

/** What breaks a stream, by how much is there. */
export type Break = (there: number) => grpc.ServiceError | undefined;

/** Keeps one upload. */
export class FakeInitiator {
  content: Buffer = Buffer.alloc(0);
  batch = 7;
  breaks: Break[] = []; // the first stream breaks as the first says, and so on
  refuses?: grpc.ServiceError; // what each submit is answered with
  late = false; // accepts only when something was sent behind the header
  acknowledges = true;
  unsealed?: grpc.ServiceError; // what each seal is answered with
  headers: SubmitHeader__Output[] = [];
  received = 0;
  watches: number[][] = []; // revisions; each call takes one, and breaks unless it is the last
  watched: number[] = []; // the revisions that the calls knew
  fails?: grpc.ServiceError; // what getBatch is answered with
  retries: (RetryRejectionsResponse | grpc.ServiceError)[] = []; // what each retryRejections is answered with
  retried: RetryRejectionsRequest__Output[] = [];
  unlisted = 0; // the first lists have no controller
  listed = 0; // so far
  rejections: RejectedTransaction[] = [];
  read = 0; // calls of readRecords, each of which is answered with one record
  address = "";
  private readonly server = new grpc.Server();

  async start(): Promise<string> {
    this.server.addService(v1.BatchService.service, {
      submit: (stream: SubmitStream) => this.submit(stream).catch(() => {}), // its client has gone
      watchBatch: (call: grpc.ServerWritableStream<WatchBatchRequest__Output, WatchBatchResponse>) => this.watch(call),
      getBatch: (_: unknown, done: grpc.sendUnaryData<unknown>) => done(this.fails ?? null, {}),
      retryRejections: ({ request }: { request: RetryRejectionsRequest__Output }, done: grpc.sendUnaryData<unknown>) => {
        this.retried.push(request);
        const answer = this.retries.shift();
        if (answer instanceof Error) done(answer);
        else done(null, answer);
      },
      readRecords: ({ request }: { request: ReadRecordsRequest__Output }, done: grpc.sendUnaryData<unknown>) =>
        done(null, this.readRecords(request)),
    } as unknown as grpc.UntypedServiceImplementation);
    this.server.addService(v1.MeshService.service, {
      listInstances: (_: unknown, done: grpc.sendUnaryData<unknown>) => {
        this.listed += 1;
        done(null, { instances: this.listed <= this.unlisted ? [] : [{ info: { address: this.address } }] });
      },
    } as unknown as grpc.UntypedServiceImplementation);
    this.server.addService(v1.ReportService.service, {
      getReport: (call: grpc.ServerWritableStream<unknown, GetReportResponse>) => {
        call.write({ schema: { name: "by_customer", keys: ["customer"], measures: [{ name: "revenue", scale: 2 }] } });
        call.write({ rows: { rows: [{ keys: ["Ada"], measures: ["1.50"] }] } });
        call.end();
      },
      getOutput: (_: unknown, done: grpc.sendUnaryData<unknown>) => done(null,
        { columns: [{ name: "note", type: "OUTPUT_TYPE_TEXT" }], records: [{ line: 1, fields: ["paid"] }] }),
      listRejections: ({ request }: { request: ListRejectionsRequest__Output }, done: grpc.sendUnaryData<unknown>) =>
        done(null, { rejections: request.after === null ? this.rejections : [] }),
    } as unknown as grpc.UntypedServiceImplementation);
    const port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(),
        (error, bound) => (error === null ? resolve(bound) : reject(error)));
    });
    this.address = `127.0.0.1:${port}`;
    return this.address;
  }

  stop(): void {
    this.server.forceShutdown();
  }

  ids(): string[] {
    return this.headers.map(({ requestId }) => requestId.toString());
  }

  private async submit(stream: SubmitStream): Promise<void> {
    stream.on("error", () => {});
    const requests = stream[Symbol.asyncIterator]() as AsyncIterator<SubmitRequest__Output>;
    const first = await requests.next();
    this.headers.push(first.value.header);
    if (this.refuses !== undefined) {
      stream.emit("error", this.refuses);
      return;
    }
    const breaks = this.breaks.shift() ?? (() => undefined);
    const held = this.late ? await requests.next() : undefined;
    stream.write({ accepted: { batch: this.batch, durableOffset: this.content.length } });
    for (let next = held ?? (await requests.next()); !next.done; next = await requests.next()) {
      const { chunk, seal } = next.value as SubmitRequest__Output;
      if (seal) return this.seal(stream, Number(seal.size), seal.contentHash);
      if (!chunk || Number(chunk.offset) !== this.content.length) {
        stream.emit("error", failure(grpc.status.OUT_OF_RANGE, "a gap"));
        return;
      }
      this.content = Buffer.concat([this.content, chunk.data]);
      this.received += 1;
      if (this.acknowledges) stream.write({ durable: { durableOffset: this.content.length } });
      const broken = breaks(this.content.length);
      if (broken !== undefined) {
        stream.emit("error", broken);
        return;
      }
    }
  }

  private async seal(stream: SubmitStream, size: number, hash: Buffer): Promise<void> {
    if (this.unsealed !== undefined) {
      stream.emit("error", this.unsealed);
      return;
    }
    const whole = Buffer.from((await createXXHash128()).init().update(this.content).digest("hex"), "hex");
    if (size !== this.content.length || !hash.equals(whole)) {
      stream.emit("error", failure(grpc.status.DATA_LOSS, "another hash"));
      return;
    }
    stream.write({ sealed: { status: { batch: this.batch } } });
    stream.end();
  }

  /** The first that is asked for: a message has no room for more. */
  private readRecords({ items }: ReadRecordsRequest__Output): ReadRecordsResponse {
    this.read += 1;
    const [{ item, lines: [line] }] = items;
    const asked = items.reduce((sum, { lines }) => sum + lines.length, 0);
    return { records: [{ item, line, record: Buffer.from(`record ${line}`) }], more: asked > 1 };
  }

  private watch(call: grpc.ServerWritableStream<WatchBatchRequest__Output, WatchBatchResponse>): void {
    this.watched.push(Number(call.request.afterRevision));
    const revisions = this.watches.shift() ?? [];
    const last = this.watches.length === 0;
    for (const revision of revisions) {
      call.write({ status: { batch: call.request.batch, revision, complete: last,
        state: last ? "BATCH_STATE_COMPLETE" : "BATCH_STATE_SEALED" } });
    }
    if (last) call.end();
    else call.emit("error", failure(grpc.status.UNAVAILABLE, "about to stop"));
  }
}
