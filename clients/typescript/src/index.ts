// SPDX-License-Identifier: Apache-2.0

/** A client of muster: submits batches, follows them, reads their reports, and serves handlers. */
export { BigNumber } from "bignumber.js";

export { Unfit } from "./amounts";
export type { Batch, BatchState, Flow } from "./batch";
export { NotAccepted } from "./call";
export type { Answer, CalledRecord, CallOptions } from "./call";
export { Client } from "./client";
export type { BatchFilter, ClientOptions, Job, Submission, WatchOptions } from "./client";
export { jsonLines } from "./content";
export type { Source } from "./content";
export { MusterError } from "./errors";
export type { Code, ErrorDetails, FieldViolation, JobProblem } from "./errors";
export { EventProcessor } from "./event_processor";
export type { EventHandlers, EventProcessorOptions, PartitionContext, ProcessorError } from "./event_processor";
export { EventProducer } from "./event_producer";
export type { EventPlace, OutgoingEvent, StreamEvent } from "./event_producer";
export type { FailedTransaction } from "./failures";
export { HandlerServer, serveHandler } from "./handler";
export type { HandlerOptions } from "./handler";
export { Dead, Defer, Retry, Transaction } from "./handler_call";
export type { HandledJob, Item, Work } from "./handler_call";
export type { OutputColumn, OutputRecord, OutputValues } from "./output";
export type { Amount, Group, Measure, Receipt, ReportRow, Row } from "./report";
export { Results } from "./results";
export type { RetriedBatch, RetryOptions } from "./retry";
export type { CatchUp, Schedule, ScheduleOptions } from "./schedule";
export type { SubmitProgress } from "./upload";
