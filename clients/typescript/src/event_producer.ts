// SPDX-License-Identifier: Apache-2.0

// EventProducer: appends to event streams.
import * as grpc from "@grpc/grpc-js";

import type { AppendEventsRequest } from "./generated/muster/v1/AppendEventsRequest";
import type { AppendEventsResponse__Output } from "./generated/muster/v1/AppendEventsResponse";
import type { StreamEvent__Output } from "./generated/muster/v1/StreamEvent";
import { ask } from "./ask";
import { CHANNEL_OPTIONS, checkedAddress, clientCredentials, PemFiles } from "./channel";
import { toDate, toNumber, v1 } from "./protos";

/** Where an event lies. */
export interface EventPlace {
  partition: number;
  offset: number;
}

/** An event to append: events of one key go to one partition, and keep their order. */
export interface OutgoingEvent {
  body: string | Uint8Array;
  key?: string | Uint8Array;
  properties?: Record<string, string | Uint8Array>;
}

/** An event of a partition. */
export interface StreamEvent {
  /** In its partition, from 1. */
  offset: number;
  /** When the stream took it. */
  appended: Date;
  /** Empty: none. */
  key: Buffer;
  body: Buffer;
  properties: Record<string, Buffer>;
}

export function toEvent(sent: StreamEvent__Output): StreamEvent {
  return {
    offset: toNumber(sent.offset), appended: toDate(sent.appended ?? { seconds: 0, nanos: 0 }),
    key: sent.key, body: sent.body, properties: { ...sent.properties },
  };
}

/** Appends to one stream of a mesh. To be closed. */
export class EventProducer {
  private readonly streams: InstanceType<typeof v1.StreamService>;

  /** `server` is an initiator's HOST:PORT; a call takes `timeoutMs` (30 s) at most, with its tries. */
  constructor(server: string, private readonly stream: string, private readonly options: PemFiles & { timeoutMs?: number } = {}) {
    this.streams = new v1.StreamService(checkedAddress(server), clientCredentials(options), CHANNEL_OPTIONS);
  }

  close(): void {
    this.streams.close();
  }

  /**
   * Appends an event: to `partition`; else to that of its key; else to the next in turn. Returns when it is
   * durable. A call whose outcome is unknown is repeated, and the event may come twice.
   */
  async send(event: OutgoingEvent, partition?: number): Promise<EventPlace> {
    return (await this.sendMany([event], partition))[0];
  }

  /**
   * The same for several, at most 1,000 and 3 MiB together; the places are in their order. After an error any
   * of them may have been appended.
   */
  async sendMany(events: OutgoingEvent[], partition?: number): Promise<EventPlace[]> {
    const request: AppendEventsRequest = {
      stream: this.stream,
      events: events.map(({ body, key = "", properties = {} }) => ({
        body: Buffer.from(body), key: Buffer.from(key),
        properties: Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, Buffer.from(value)])),
      })),
    };
    if (partition !== undefined) request.partition = partition;
    const limits: grpc.CallOptions = { deadline: Date.now() + (this.options.timeoutMs ?? 30_000) };
    const { places } = await ask<AppendEventsResponse__Output>((done) => this.streams.appendEvents(request, limits, done));
    return places.map(({ partition: there, offset }) => ({ partition: there, offset: toNumber(offset) }));
  }
}
