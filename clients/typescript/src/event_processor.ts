// SPDX-License-Identifier: Apache-2.0

// EventProcessor: reads event streams as a member of a group.
import { setTimeout as sleep } from "node:timers/promises";

import type { ProcessEventsStart } from "./generated/muster/v1/ProcessEventsStart";
import { CHANNEL_OPTIONS, checkedAddress, clientCredentials, PemFiles } from "./channel";
import { MusterError } from "./errors";
import { StreamEvent } from "./event_producer";
import { EventSession } from "./event_session";
import { toDuration, v1 } from "./protos";

// Waits between two calls of a processor whose server was lost.
const MIN_WAIT_MS = 200;
const MAX_WAIT_MS = 5_000;

/** What failed; the processor goes on. */
export interface ProcessorError {
  /** -1: none. */
  partition: number;
  /** "open", "read", "handle", "retention", "beyond end", "lost" or "membership". */
  operation: string;
  error: unknown;
  /** Of "retention" and "lost". */
  eventsLost: number;
}

/** A partition that this member owns, from its opening to its close. */
export interface PartitionContext {
  partition: number;
  /** A later owner has a higher one: what is written elsewhere can check it. */
  epoch: number;
  /** The offset of the first event. */
  beginsAt: number;
  /**
   * Saves that `event` and all before it are done with; the group goes on behind it. To be called by `onEvent`
   * and `onPartitionClosing`, as often as they like.
   *
   * FAILED_PRECONDITION: another member may own the partition. ABORTED: a replay has moved the checkpoint, and
   * the partition is opened again there. UNAVAILABLE: the server is lost.
   */
  updateCheckpoint(event: StreamEvent): Promise<void>;
}

/**
 * What a processor calls. Calls for one partition never overlap, those for different ones do where they await
 * something.
 */
export interface EventHandlers {
  /** When it throws, `onError` is told, and the event comes again after growing waits. */
  onEvent(partition: PartitionContext, event: StreamEvent): void | Promise<void>;
  onError?(error: ProcessorError): void;
  /** The partition's events follow when it is done. */
  onPartitionInitializing?(partition: PartitionContext): void | Promise<void>;
  /** Hears why: "handed over", "shutdown", "replayed" or "lost". */
  onPartitionClosing?(partition: PartitionContext, reason: string): void | Promise<void>;
}

export interface EventProcessorOptions extends PemFiles {
  /** No two members of a group have the same; without one, the server makes it. */
  member?: string;
  /** Where the group begins in a partition without a checkpoint: 0, the first event that is kept, or -1, behind the last. */
  beginAt?: number;
  /** Of the group's cycles, the same for all members; 10 s. */
  intervalMs?: number;
}

/**
 * Reads a stream as a member of a group: with the group's others it shares the partitions, and gets the events
 * of each that it owns in order, each at least once. To be closed.
 *
 * The server owns the partitions for this process as long as its call lives, so they go to others when the
 * process dies. One event of a partition is on its way at a time.
 */
export class EventProcessor {
  private readonly streams: InstanceType<typeof v1.StreamService>;
  private readonly start: ProcessEventsStart;
  private readonly stopping = new AbortController();
  private session?: EventSession;

  /** `server` is an initiator's HOST:PORT. */
  constructor(server: string, stream: string, group: string, options: EventProcessorOptions = {}) {
    this.streams = new v1.StreamService(checkedAddress(server), clientCredentials(options), CHANNEL_OPTIONS);
    this.start = { stream, group, member: options.member ?? "", beginAt: options.beginAt ?? 0 };
    if (options.intervalMs !== undefined) this.start.interval = toDuration(options.intervalMs);
  }

  /**
   * Handles events until `stop`. A lost server is called again until then. Throws what cannot pass by itself,
   * such as NOT_FOUND, and FAILED_PRECONDITION when another member has started with this one's name.
   */
  async run(handlers: EventHandlers): Promise<void> {
    for (let wait = MIN_WAIT_MS; !this.stopping.signal.aborted;) {
      const session = new EventSession(handlers);
      this.session = session;
      try {
        await session.run(this.streams, this.start);
        return;
      } catch (error) {
        if (!(error instanceof MusterError) || !["UNAVAILABLE", "CANCELLED"].includes(error.code)) throw error;
        handlers.onError?.({ partition: -1, operation: "open", error, eventsLost: 0 });
        wait = session.started ? MIN_WAIT_MS : Math.min(2 * wait, MAX_WAIT_MS);
        await sleep(wait, undefined, { signal: this.stopping.signal }).catch(() => {});
      } finally {
        this.session = undefined;
      }
    }
  }

  /** Has `run` finish the events in hand, close the partitions, and return. */
  stop(): void {
    this.stopping.abort();
    this.session?.stop();
  }

  close(): void {
    this.stop();
    this.streams.close();
  }
}
