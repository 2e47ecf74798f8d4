// Channels that are set up as muster's servers expect it.
import { readFileSync } from "node:fs";

import * as grpc from "@grpc/grpc-js";

/** Paths of PEM files; see ClientOptions and HandlerOptions. */
export interface PemFiles {
  ca?: string;
  certificate?: string;
  key?: string;
}

const MAX_MESSAGE_BYTES = 4 << 20;

// As those of muster's own command: see muster/rpc/limits.h for the reasons. gRPC loses messages of a
// stream when it tries it again, so Submit tries again by itself. A record of a Call that is tried again
// may be counted twice.
export const CHANNEL_OPTIONS: grpc.ChannelOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 5_000,
  "grpc.service_config": JSON.stringify({
    loadBalancingConfig: [],
    methodConfig: [
      {
        name: [{ service: "muster.v1.BatchService", method: "Submit" },
          { service: "muster.v1.CallService", method: "Call" }],
      },
      {
        name: [{}],
        retryPolicy: {
          maxAttempts: 5, initialBackoff: "0.1s", maxBackoff: "2s", backoffMultiplier: 2,
          retryableStatusCodes: ["UNAVAILABLE"],
        },
      },
    ],
  }),
};

function read(path: string | undefined): Buffer | null {
  return path === undefined ? null : readFileSync(path);
}

/** Plaintext, unless a file is named. */
export function clientCredentials(files: PemFiles): grpc.ChannelCredentials {
  const { ca, certificate, key } = files;
  if (ca === undefined && certificate === undefined && key === undefined) return grpc.credentials.createInsecure();
  if ((certificate === undefined) !== (key === undefined)) throw new TypeError("certificate and key go together");
  return grpc.credentials.createSsl(read(ca), read(key), read(certificate));
}

/** Plaintext without a certificate; with a ca, callers must show one of its certificates. */
export function serverCredentials(files: PemFiles): grpc.ServerCredentials {
  const { ca, certificate, key } = files;
  if (ca === undefined && certificate === undefined && key === undefined) {
    return grpc.ServerCredentials.createInsecure();
  }
  if (certificate === undefined || key === undefined) {
    throw new TypeError("certificate and key go together, and a ca with them");
  }
  const pair = { private_key: readFileSync(key), cert_chain: readFileSync(certificate) };
  return grpc.ServerCredentials.createSsl(read(ca), [pair], ca !== undefined);
}
