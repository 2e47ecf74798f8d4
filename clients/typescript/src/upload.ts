// SPDX-License-Identifier: Apache-2.0

// Uploads a batch, and goes on where it was cut off.
import type { SubmitHeader } from "./generated/muster/v1/SubmitHeader";
import type { SubmitRequest } from "./generated/muster/v1/SubmitRequest";
import type { BatchStatus__Output } from "./generated/muster/v1/BatchStatus";
import type { BatchServiceClient } from "./generated/muster/v1/BatchService";
import { Content, Unreadable } from "./content";
import { fromRpc, MusterError } from "./errors";
import { Patience } from "./patience";
import { toNumber } from "./protos";

/** The server stops reading when a client runs further ahead of what is durable. */
const AHEAD_BYTES = 8 << 20;

/** How much of an upload the initiator has on its disk, and need not be sent again. */
export interface SubmitProgress {
  batch: number;
  durable: number;
  /** Of the content; undefined: not known yet. */
  size?: number;
}

/** What the two directions of a stream know of each other. */
class Heard {
  acceptedAt?: number;
  durable = 0;
  ended = false;
  private waiting: (() => void)[] = [];

  changed(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }

  async until(holds: () => boolean): Promise<boolean> {
    while (!this.ended && !holds()) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return !this.ended;
  }
}

type SubmitCall = ReturnType<BatchServiceClient["submit"]>;

/** Sends a stream's requests. What the call fails with, its other direction hears. */
class Sender {
  constructor(private readonly content: Content, private readonly header: SubmitHeader,
    private readonly call: Pick<SubmitCall, "write" | "end">, private readonly heard: Heard) {}

  async run(atOnce: boolean): Promise<void> {
    // Before anything is heard: what is durable elsewhere is not kept here.
    const sole = atOnce ? await this.content.soleChunk() : undefined;
    if (this.heard.ended) return;
    this.write({ header: { ...this.header, atOnce: sole !== undefined && sole.length > 0 } });
    if (sole !== undefined) {
      if (sole.length > 0) this.write({ chunk: { offset: 0, data: sole } });
      this.seal();
      return;
    }
    if (!(await this.heard.until(() => this.heard.acceptedAt !== undefined))) return;
    let offset = this.heard.acceptedAt ?? 0;
    while (await this.heard.until(() => offset < this.heard.durable + AHEAD_BYTES)) {
      const data = await this.content.take(offset);
      if (this.heard.ended) return;
      if (data.length === 0) {
        this.seal();
        return;
      }
      this.write({ chunk: { offset, data } });
      offset += data.length;
    }
  }

  private write(request: SubmitRequest): void {
    this.call.write(request); // what is not sent yet is bounded by AHEAD_BYTES
  }

  private seal(): void {
    this.write({ seal: { size: this.content.size, contentHash: this.content.digest } });
    this.call.end();
  }
}

/** All streams that it takes to get a batch across. */
export class Upload {
  private batch?: number;
  private durable = 0; // at most, so far
  private news = false;

  constructor(private readonly content: Content, private readonly header: SubmitHeader,
    private readonly size: number | undefined, private readonly progress?: (progress: SubmitProgress) => void,
    private readonly signal?: AbortSignal) {}

  async run(stub: BatchServiceClient, patience: Patience): Promise<BatchStatus__Output> {
    // Most batches are new. Of one that is not, the initiator says so, and is then asked first.
    for (let atOnce = true; ; atOnce = false) {
      this.news = false;
      let trouble: unknown;
      try {
        const sealed = await this.stream(stub, atOnce);
        if (sealed !== undefined) return sealed;
        trouble = new MusterError("UNAVAILABLE", "the initiator ended the upload early");
      } catch (error) {
        trouble = fromRpc(error);
      }
      if (trouble instanceof Unreadable) throw trouble.cause;
      if (atOnce && trouble instanceof MusterError && trouble.code === "OUT_OF_RANGE") continue;
      if (this.news) patience.refresh();
      await patience.waitAfter(trouble, "the upload");
    }
  }

  /** What the seal was answered with; undefined: the server has ended the stream without. */
  private async stream(stub: BatchServiceClient, atOnce: boolean): Promise<BatchStatus__Output | undefined> {
    this.signal?.throwIfAborted();
    const call = stub.submit();
    call.on("error", () => {}); // the iteration below throws it; what comes later is of no interest
    const heard = new Heard();
    const cancel = (): void => call.cancel();
    this.signal?.addEventListener("abort", cancel);
    let unsent: unknown;
    const sending = new Sender(this.content, this.header, call, heard).run(atOnce).catch((error: unknown) => {
      unsent = error;
      call.cancel();
    });
    try {
      return await this.hear(call, heard);
    } catch (error) {
      throw unsent ?? error;
    } finally {
      heard.ended = true;
      heard.changed();
      this.signal?.removeEventListener("abort", cancel);
      call.cancel();
      // The next stream takes the content from here on.
      if (!this.signal?.aborted) await sending;
    }
  }

  private async hear(call: SubmitCall, heard: Heard): Promise<BatchStatus__Output | undefined> {
    let sealed: BatchStatus__Output | undefined;
    for await (const response of call) {
      if (response.step === "accepted" && response.accepted) {
        const durable = toNumber(response.accepted.durableOffset);
        this.onDurable(toNumber(response.accepted.batch), durable);
        heard.acceptedAt = durable;
        heard.durable = durable;
      } else if (response.step === "durable" && response.durable) {
        heard.durable = toNumber(response.durable.durableOffset);
        this.onDurable(this.batch ?? 0, heard.durable);
      } else if (response.step === "sealed") {
        sealed = response.sealed?.status ?? undefined;
      }
      heard.changed();
    }
    return sealed;
  }

  private onDurable(batch: number, durable: number): void {
    // A batch that was cancelled meanwhile is not begun anew behind its submitter's back.
    if (this.batch !== undefined && this.batch !== batch) {
      throw new MusterError("CANCELLED", `batch ${this.batch} was cancelled`, { reason: "BATCH_CANCELLED" });
    }
    // Not that the header is accepted once more: what comes behind it may fail each time.
    this.news ||= this.batch === undefined || durable > this.durable;
    this.batch = batch;
    this.durable = Math.max(this.durable, durable);
    this.content.forget(durable);
    this.progress?.({ batch, durable, size: this.size });
  }
}
