// SPDX-License-Identifier: Apache-2.0

// The services and messages, made of the protos that the package brings.
import * as path from "node:path";

import * as grpc from "@grpc/grpc-js";
import * as protoLoader from "@grpc/proto-loader";

import type { ProtoGrpcType as BatchProtos } from "./generated/batch_service";
import type { ProtoGrpcType as CallProtos } from "./generated/call_service";
import type { BadRequest__Output } from "./generated/google/rpc/BadRequest";
import type { ErrorInfo__Output } from "./generated/google/rpc/ErrorInfo";
import type { RetryInfo__Output } from "./generated/google/rpc/RetryInfo";
import type { Status__Output } from "./generated/google/rpc/Status";
import type { ProtoGrpcType as HandlerProtos } from "./generated/handler_service";
import type { ProtoGrpcType as JobProtos } from "./generated/job_service";
import type { ProtoGrpcType as MeshProtos } from "./generated/mesh_service";
import type { HandlerAnswer } from "./generated/muster/v1/HandlerAnswer";
import type { ProtoGrpcType as ReportProtos } from "./generated/report_service";
import type { ProtoGrpcType as ScheduleProtos } from "./generated/schedule_service";
import type { ProtoGrpcType as StreamProtos } from "./generated/stream_service";

const NAMES = ["batch_service", "call_service", "handler_service", "job_service", "mesh_service", "report_service",
  "schedule_service", "stream_service"];

const definition = protoLoader.loadSync(
  [...NAMES.map((name) => `muster/v1/${name}.proto`), "google/rpc/status.proto", "google/rpc/error_details.proto"],
  // package.json's folder, from dist/src.
  { includeDirs: [path.join(__dirname, "..", "..", "proto")], longs: String, enums: String, defaults: true, oneofs: true });

export const { v1 } = (grpc.loadPackageDefinition(definition) as unknown as
  BatchProtos & CallProtos & HandlerProtos & JobProtos & MeshProtos & ReportProtos & ScheduleProtos &
  StreamProtos).muster;

function message<Written, Read>(name: string): { read(bytes: Buffer): Read; size(value: Written): number } {
  const type = definition[name] as protoLoader.MessageTypeDefinition<object, object>;
  return {
    read: (bytes) => type.deserialize(bytes) as Read,
    size: (value) => type.serialize(value as object).length,
  };
}

export const details = {
  status: message<never, Status__Output>("google.rpc.Status"),
  badRequest: message<never, BadRequest__Output>("google.rpc.BadRequest"),
  retryInfo: message<never, RetryInfo__Output>("google.rpc.RetryInfo"),
  errorInfo: message<never, ErrorInfo__Output>("google.rpc.ErrorInfo"),
};

export const handlerAnswer = message<HandlerAnswer, never>("muster.v1.HandlerAnswer");

// 64-bit numbers travel as text. Those of a mesh are far below 2^53.
export function toNumber(text: string | number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is no safe integer`);
  return value;
}

interface Timestamp { seconds: string | number; nanos: number }

export function toMilliseconds(span: Timestamp): number {
  return Number(span.seconds) * 1000 + span.nanos / 1e6;
}

export function toDate(stamp: Timestamp): Date {
  return new Date(Math.floor(toMilliseconds(stamp)));
}

export function toDuration(milliseconds: number): { seconds: string; nanos: number } {
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = Math.round((milliseconds - seconds * 1000) * 1e6);
  return nanos < 1e9 ? { seconds: String(seconds), nanos } : { seconds: String(seconds + 1), nanos: 0 };
}
