// SPDX-License-Identifier: Apache-2.0

// Serves a handler: the protocol of docs/grpc_handlers.md, around a function that works on an item.
import * as grpc from "@grpc/grpc-js";

import type { Hello__Output } from "./generated/muster/v1/Hello";
import type { WorkRequest__Output } from "./generated/muster/v1/WorkRequest";
import type { WorkResponse } from "./generated/muster/v1/WorkResponse";
import { PemFiles, serverCredentials } from "./channel";
import { HandledJob, HandlerCall, Work } from "./handler_call";
import { toColumns } from "./output";
import { v1 } from "./protos";
import { toGroup } from "./report";

const PROTOCOL_VERSION = 1;

/** `certificate` and `key` (PEM files) encrypt, and with `ca` processors must show one of its certificates. */
export interface HandlerOptions extends PemFiles {
  /** Stands for what the work computes; the job file must say the same. */
  version: string;
  /** HOST:PORT; localhost:7800. Port 0: one that is free; `address` of the server tells. */
  listen?: string;
  /** For logs; "node". */
  name?: string;
  /** Items of each processor that come at a time; 1. */
  concurrency?: number;
  /** Jobs without these are refused. */
  columns?: string[];
  groups?: string[];
  /** Processors at a time, each with `concurrency` items at most; 256. Others are told to come again. */
  maxProcessors?: number;
}

/** A refusal as grpc-js takes it of a handler. */
function refusal(code: grpc.status, details: string): Partial<grpc.StatusObject> & Error {
  return Object.assign(new Error(details), { code, details });
}

/** A server of HandlerService, as serveHandler starts it. */
export class HandlerServer {
  /** HOST:PORT, the port that it listens on. */
  address = "";
  private readonly server = new grpc.Server();
  private readonly calls = new Set<HandlerCall>();
  private processors = 0;
  private stopping?: Promise<void>;

  /** Use serveHandler. */
  constructor(private readonly work: Work, private readonly options: HandlerOptions) {
    this.server.addService(v1.HandlerService.service, {
      work: (stream: grpc.ServerDuplexStream<WorkRequest__Output, WorkResponse>) => this.hear(stream),
    });
  }

  async listen(): Promise<void> {
    const address = this.options.listen ?? "localhost:7800";
    const port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync(address, serverCredentials(this.options), (error, bound) =>
        error === null ? resolve(bound) : reject(error));
    });
    this.address = `${address.slice(0, address.lastIndexOf(":"))}:${port}`;
  }

  /** Serves until SIGTERM or SIGINT comes, then stops; a second one ends the program at once. */
  async run(graceMs = 30_000): Promise<void> {
    await new Promise<void>((resolve) => {
      const told = (): void => {
        process.off("SIGTERM", told).off("SIGINT", told);
        resolve();
      };
      process.on("SIGTERM", told).on("SIGINT", told);
    });
    await this.stop(graceMs);
  }

  /**
   * Takes nothing new, answers what is at work for `graceMs`, and ends. Again, it does nothing. What is not
   * answered goes elsewhere, and counts as no attempt.
   */
  stop(graceMs = 30_000): Promise<void> {
    this.stopping ??= new Promise<void>((resolve) => {
      const overdue = setTimeout(() => {
        for (const call of this.calls) call.giveUp();
        this.server.forceShutdown();
        resolve();
      }, graceMs);
      this.server.tryShutdown(() => {
        clearTimeout(overdue);
        resolve();
      });
      for (const call of this.calls) call.leave();
    });
    return this.stopping;
  }

  /** One call of one processor, as long as it works for the job. */
  private hear(stream: grpc.ServerDuplexStream<WorkRequest__Output, WorkResponse>): void {
    if (this.stopping !== undefined || this.processors >= (this.options.maxProcessors ?? 256)) {
      stream.emit("error", refusal(grpc.status.UNAVAILABLE, "the handler stops, or too many processors call it"));
      return;
    }
    this.processors += 1;
    let here = true;
    let call: HandlerCall | undefined;
    const end = (): void => {
      if (here) this.processors -= 1;
      here = false;
      if (call !== undefined) this.calls.delete(call);
    };
    stream.on("data", (request: WorkRequest__Output) => {
      if (call !== undefined) {
        call.take(request);
      } else if (here) {
        call = this.greet(stream, request, end);
      }
    });
    stream.on("end", () => (call === undefined ? (stream.end(), end()) : call.leave()));
    stream.on("cancelled", () => (call === undefined ? end() : call.giveUp()));
    stream.on("error", () => call?.giveUp());
  }

  private greet(stream: grpc.ServerDuplexStream<WorkRequest__Output, WorkResponse>, request: WorkRequest__Output,
    end: () => void): HandlerCall | undefined {
    const refused = this.refusalOf(request.hello ?? null);
    if (typeof refused === "string") {
      end();
      stream.emit("error", refusal(grpc.status.FAILED_PRECONDITION, refused));
      return undefined;
    }
    const { version, concurrency = 1 } = this.options;
    stream.write({ ready: { name: this.name, version, concurrency } });
    const call = new HandlerCall(stream, refused, this.work, end);
    this.calls.add(call);
    if (this.stopping !== undefined) call.leave();
    return call;
  }

  private get name(): string {
    return this.options.name ?? "node";
  }

  /** Why the job is refused, or the job. */
  private refusalOf(hello: Hello__Output | null): string | HandledJob {
    if (hello?.protocolVersion !== PROTOCOL_VERSION) {
      return `${this.name} speaks version ${PROTOCOL_VERSION}, not ${hello?.protocolVersion ?? 0}`;
    }
    const groups = new Map((hello.schema?.groups ?? []).map((group) => [group.name, toGroup(group)]));
    const job: HandledJob = {
      name: hello.schema?.job ?? "", revision: hello.schema?.revision ?? "", columns: hello.schema?.columns ?? [],
      groups, parameters: { ...hello.parameters }, processor: hello.processor,
      outputs: toColumns(hello.schema?.outputs ?? []),
    };
    for (const [kind, needed, there] of [
      ["column", this.options.columns, job.columns], ["group", this.options.groups, [...groups.keys()]]] as const) {
      const missing = (needed ?? []).filter((name) => !there.includes(name)).sort();
      if (missing.length > 0) {
        return `${this.name} needs the ${kind} ${missing.join(", ")}, which job ${job.name} does not have`;
      }
    }
    return job;
  }
}

/**
 * Starts a server for a job's `handler: {grpc: …}`; `work` is called for each item, and fills its results.
 * Calls for several items overlap where `concurrency` is above 1 and `work` awaits something.
 */
export async function serveHandler(work: Work, options: HandlerOptions): Promise<HandlerServer> {
  if (options.version === "") throw new TypeError("a handler needs a version");
  const server = new HandlerServer(work, options);
  await server.listen();
  return server;
}
