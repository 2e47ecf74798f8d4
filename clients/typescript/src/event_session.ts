// SPDX-License-Identifier: Apache-2.0

// One call of ProcessEvents.
import type * as grpc from "@grpc/grpc-js";

import type { PartitionOpened__Output } from "./generated/muster/v1/PartitionOpened";
import type { ProcessEventsRequest } from "./generated/muster/v1/ProcessEventsRequest";
import type { ProcessEventsResponse__Output } from "./generated/muster/v1/ProcessEventsResponse";
import type { ProcessEventsStart } from "./generated/muster/v1/ProcessEventsStart";
import { codeNamed, fromRpc, MusterError } from "./errors";
import { StreamEvent, toEvent } from "./event_producer";
import type { EventHandlers, PartitionContext } from "./event_processor";
import { toWords } from "./output";
import { toNumber, v1 } from "./protos";
import { checkDone } from "./work";

interface Save {
  resolve(): void;
  reject(error: Error): void;
}

type Call = grpc.ClientDuplexStream<ProcessEventsRequest, ProcessEventsResponse__Output>;

export class EventSession {
  /** The server has taken this member in. */
  started = false;
  private call?: Call;
  private over = false;
  private readonly partitions = new Map<number, { context: PartitionContext; initialized: Promise<unknown> }>();
  private readonly saves = new Map<number, Save[]>(); // by partition, in the order of their answers
  private readonly working = new Set<Promise<void>>();

  constructor(private readonly handlers: EventHandlers) {}

  /** Is over when the server has ended the session, as after `stop`; throws when it is lost. All handlers have returned then. */
  async run(streams: InstanceType<typeof v1.StreamService>, start: ProcessEventsStart): Promise<void> {
    const call: Call = streams.processEvents();
    call.on("error", () => {}); // the iteration throws it
    this.call = call;
    call.write({ start });
    try {
      for await (const response of call as AsyncIterable<ProcessEventsResponse__Output>) {
        if (response.ended) {
          const { code, message } = response.ended;
          if (code !== 0) throw new MusterError(codeNamed(code), message);
          return;
        }
        this.take(response);
      }
      throw new MusterError("UNAVAILABLE", "the server has ended the call");
    } catch (error) {
      throw fromRpc(error);
    } finally {
      this.over = true;
      for (const save of [...this.saves.values()].flat()) save.reject(new MusterError("UNAVAILABLE", "the server is lost"));
      this.saves.clear();
      call.end();
      call.cancel();
      await Promise.all(this.working);
    }
  }

  stop(): void {
    this.send({ stop: {} });
  }

  /** Passes over messages that it does not know. */
  private take(response: ProcessEventsResponse__Output): void {
    const { opened, event, closing, saved, error } = response;
    if (response.message === "member") this.started = true;
    if (opened) this.open(opened);
    if (event?.event) {
      const told = toEvent(event.event);
      this.work(event.partition, (partition) => this.handlers.onEvent(partition, told));
    }
    if (closing) {
      const reason = closing.reason.replace("PARTITION_CLOSE_REASON_", "").replaceAll("_", " ").toLowerCase();
      this.work(closing.partition, async (partition) => {
        await this.guarded(partition.partition, () => this.handlers.onPartitionClosing?.(partition, reason));
      });
    }
    if (saved) {
      const save = this.saves.get(saved.partition)?.shift();
      if (saved.code === 0) save?.resolve();
      else save?.reject(new MusterError(codeNamed(saved.code), saved.message));
    }
    if (error && error.operation !== "handle") { // those of this process have been told
      this.handlers.onError?.({ partition: error.partition, operation: error.operation,
        error: new MusterError(codeNamed(error.code), error.message), eventsLost: toNumber(error.eventsLost) });
    }
  }

  private open({ partition, epoch, beginsAt }: PartitionOpened__Output): void {
    const context: PartitionContext = {
      partition, epoch: toNumber(epoch), beginsAt: toNumber(beginsAt),
      updateCheckpoint: (event) => this.save(partition, event),
    };
    const initialized = this.guarded(partition, () => this.handlers.onPartitionInitializing?.(context));
    this.partitions.set(partition, { context, initialized });
  }

  /** Answers when `call` is done: the server sends nothing more for the partition before. */
  private work(partition: number, call: (context: PartitionContext) => void | Promise<void>): void {
    const opened = this.partitions.get(partition);
    if (opened === undefined) return; // one that was not opened has no events
    const working = opened.initialized.then(() => this.guarded(partition, () => call(opened.context))).then((error) => {
      this.send({ handled: { partition, error } });
      this.working.delete(working);
    });
    this.working.add(working);
  }

  private save(partition: number, event: StreamEvent): Promise<void> {
    if (this.over) return Promise.reject(new MusterError("UNAVAILABLE", "the server is lost"));
    return new Promise((resolve, reject) => {
      this.saves.set(partition, [...this.saves.get(partition) ?? [], { resolve, reject }]);
      this.send({ checkpoint: { partition, offset: event.offset } });
    });
  }

  private send(request: ProcessEventsRequest): void {
    if (!this.over) this.call?.write(request);
  }

  /** What `call` throws, in words, after `onError` was told; "": nothing. */
  private async guarded(partition: number, call: () => void | Promise<void>): Promise<string> {
    try {
      checkDone(await call());
      return "";
    } catch (error) {
      this.handlers.onError?.({ partition, operation: "handle", error, eventsLost: 0 });
      return toWords(error) || "failed";
    }
  }
}
