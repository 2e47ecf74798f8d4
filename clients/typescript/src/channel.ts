// SPDX-License-Identifier: Apache-2.0

// Channels that are set up as muster's servers expect it.
import { readFileSync } from "node:fs";
import { createSecureContext, SecureContextOptions } from "node:tls";

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

/** `address`, HOST:PORT: gRPC takes 443 for a port that is missing, and looks for hosts of any name. */
export function checkedAddress(address: string): string {
  const form = /^(?:\[[^\][/@\s]*:[^\][/@\s]*\]|[^\][:/@\s]+):([0-9]{1,5})$/.exec(address);
  const port = Number(form?.[1]);
  if (!(port >= 1 && port <= 65535)) {
    throw new TypeError(`the address '${address}' must be HOST:PORT, such as localhost:7700 or [::1]:7700`);
  }
  return address;
}

function read(path: string | undefined): Buffer | null {
  return path === undefined ? null : readFileSync(path);
}

function readForClient({ ca, certificate, key }: PemFiles): grpc.ChannelCredentials {
  return grpc.credentials.createSsl(read(ca), read(key), read(certificate));
}

function readForServer({ ca, certificate, key }: PemFiles): grpc.ServerCredentials {
  if (certificate === undefined || key === undefined) {
    throw new TypeError("certificate and key go together, and a ca with them");
  }
  const pair = { private_key: readFileSync(key), cert_chain: readFileSync(certificate) };
  return grpc.ServerCredentials.createSsl(read(ca), [pair], ca !== undefined);
}

type Place = Parameters<grpc.ChannelCredentials["_createSecureConnector"]>;
type Connector = ReturnType<grpc.ChannelCredentials["_createSecureConnector"]>;

/** Reads the files for each connection: certificates are renewed while a program runs. */
class RenewedChannelCredentials extends grpc.ChannelCredentials {
  private last: grpc.ChannelCredentials; // count, too, while the files cannot be read or do not fit each other

  constructor(private readonly files: PemFiles) {
    super();
    this.last = readForClient(files);
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: grpc.ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...place: Place): Connector {
    const first = this.last._createSecureConnector(...place);
    return {
      connect: (socket) => this.now()._createSecureConnector(...place).connect(socket),
      waitForReady: () => first.waitForReady(),
      getCallCredentials: () => first.getCallCredentials(),
      destroy: () => first.destroy(),
    };
  }

  private now(): grpc.ChannelCredentials {
    try {
      this.last = readForClient(this.files);
    } catch {}
    return this.last;
  }
}

// How long a server shows the certificate before at most.
const LOOK_MS = 1000;

/** Looks at the files again and again: a server of grpc-js asks for nothing when a connection comes. */
class RenewedServerCredentials extends grpc.ServerCredentials {
  private looking?: NodeJS.Timeout;

  constructor(private readonly files: PemFiles, private last = readForServer(files)) {
    super(last._getConstructorOptions(), last._getSecureContextOptions() ?? undefined);
  }

  override _equals(other: grpc.ServerCredentials): boolean {
    return this === other;
  }

  override _addWatcher(watcher: Parameters<grpc.ServerCredentials["_addWatcher"]>[0]): void {
    super._addWatcher(watcher);
    this.looking ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  override _removeWatcher(watcher: Parameters<grpc.ServerCredentials["_addWatcher"]>[0]): void {
    super._removeWatcher(watcher);
    if (this.getWatcherCount() > 0) return;
    clearInterval(this.looking);
    this.looking = undefined;
  }

  private look(): void {
    try {
      const now = readForServer(this.files);
      if (now._equals(this.last)) return;
      const context: SecureContextOptions = { ...now._getConstructorOptions(), ...now._getSecureContextOptions() };
      createSecureContext(context);
      this.last = now;
      this.updateSecureContextOptions(context);
    } catch {} // the last ones count while the files cannot be read or do not fit each other
  }
}

/** Plaintext, unless a file is named. */
export function clientCredentials(files: PemFiles): grpc.ChannelCredentials {
  const { ca, certificate, key } = files;
  if (ca === undefined && certificate === undefined && key === undefined) return grpc.credentials.createInsecure();
  if ((certificate === undefined) !== (key === undefined)) throw new TypeError("certificate and key go together");
  return new RenewedChannelCredentials(files);
}

/** Plaintext without a certificate; with a ca, callers must show one of its certificates. */
export function serverCredentials(files: PemFiles): grpc.ServerCredentials {
  const { ca, certificate, key } = files;
  if (ca === undefined && certificate === undefined && key === undefined) {
    return grpc.ServerCredentials.createInsecure();
  }
  return new RenewedServerCredentials(files);
}
