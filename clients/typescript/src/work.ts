// SPDX-License-Identifier: Apache-2.0

// Functions of a program that are called for work.

/**
 * TypeError: nothing was done. A function with `yield` only begins when what it returns is iterated, and its type
 * tells TypeScript alone.
 */
export function checkDone(returned: unknown): void {
  if (typeof (returned as Generator | null | undefined)?.next === "function") {
    throw new TypeError("a generator was returned, which does nothing by itself");
  }
}
