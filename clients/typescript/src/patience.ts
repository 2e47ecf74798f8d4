// SPDX-License-Identifier: Apache-2.0

// How long a call that can be gone on with goes on trying while no server answers.
import { setTimeout as sleep } from "node:timers/promises";

import { MusterError } from "./errors";

const MIN_WAIT_MS = 100;
const MAX_WAIT_MS = 2_000;

/** A server that ends cancels what still runs there, and then gives no reason. */
function mayPass(trouble: MusterError): boolean {
  return trouble.code === "UNAVAILABLE" || (trouble.code === "CANCELLED" && trouble.reason === undefined);
}

/** What ends a wait early. */
export interface Limits {
  /** By Date.now(). */
  deadline?: number;
  signal?: AbortSignal;
}

export class Patience {
  private failures = 0;
  private began = 0;

  constructor(private readonly milliseconds: number, private readonly warn: (message: string) => void,
    private readonly limits: Limits = {}) {}

  /** There was news: trouble begins anew after it. */
  refresh(): void {
    this.failures = 0;
  }

  /** Waits a while before the next try. Throws what will not pass, or has lasted too long. */
  async waitAfter(trouble: unknown, what: string): Promise<void> {
    this.limits.signal?.throwIfAborted();
    const now = Date.now();
    if (this.failures === 0) this.began = now;
    if (!(trouble instanceof MusterError) || !mayPass(trouble) || now - this.began > this.milliseconds) throw trouble;
    if (this.failures === 0) this.warn(`${trouble.message}; ${what} goes on when it answers`);
    const wait = Math.min(MIN_WAIT_MS * 2 ** Math.min(this.failures, 10), MAX_WAIT_MS);
    this.failures += 1;
    await sleep(Math.max(0, Math.min(wait, (this.limits.deadline ?? Infinity) - now)));
    this.limits.signal?.throwIfAborted();
    if (this.limits.deadline !== undefined && Date.now() >= this.limits.deadline) throw outOfTime();
  }
}

export function outOfTime(): MusterError {
  return new MusterError("DEADLINE_EXCEEDED", "the time to wait is over");
}
