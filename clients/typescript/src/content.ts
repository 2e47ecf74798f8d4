// SPDX-License-Identifier: Apache-2.0

// The content of an upload, read once from front to back, and kept until it is durable elsewhere.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";

import { createXXHash128, IHasher } from "hash-wasm";

import { MusterError } from "./errors";

/** As BatchService.Submit takes them. */
const CHUNK_BYTES = 1 << 20;

/** A path, the bytes themselves, or what yields bytes: a Readable, a generator. */
export type Source = string | Uint8Array | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** JSON.stringify makes null of NaN and Infinity: an amount would be gone without a word. */
function refuseWhatIsNoNumber(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${name}: ${value} is no number of JSON`);
  return value;
}

/** A line of JSON for each record: content for jobs whose format is jsonl. Throws a TypeError for NaN and Infinity. */
export function jsonLines(records: Iterable<unknown>): Buffer {
  const lines = Array.from(records, (record) => `${JSON.stringify(record, refuseWhatIsNoNumber)}\n`);
  return Buffer.from(lines.join(""), "utf-8");
}

type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Content that is about to be read: its size and hash are known where it can be read twice. */
export interface Opened {
  pieces: Pieces;
  size?: number;
  digest?: string;
}

async function hashOf(pieces: Pieces): Promise<string> {
  const whole = (await createXXHash128()).init();
  for await (const piece of pieces) whole.update(piece);
  return whole.digest("hex");
}

/** Opens the file when it is first read: a stream that nobody listens to yet throws its error at the process. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, void, void> {
  yield* createReadStream(path, { highWaterMark: CHUNK_BYTES });
}

export async function opened(source: Source, wantsDigest: boolean): Promise<Opened> {
  if (typeof source === "string") {
    const { size } = await stat(source);
    const digest = wantsDigest ? await hashOf(piecesOf(source)) : undefined;
    return { pieces: piecesOf(source), size, digest };
  }
  if (source instanceof Uint8Array) {
    return { pieces: [source], size: source.length, digest: wantsDigest ? await hashOf([source]) : undefined };
  }
  return { pieces: source };
}

/** The content cannot be read; `cause` says why. */
export class Unreadable extends Error {
  constructor(override readonly cause: unknown) {
    super("the content cannot be read");
  }
}

/**
 *    0        durable      end
 *    │ forgotten │  kept    │ not read yet
 */
export class Content {
  private readonly pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  private kept: { begin: number; data: Uint8Array }[] = [];
  private left: Uint8Array = new Uint8Array(0); // of the last piece
  private whole = false;
  private end = 0;
  private sum?: Buffer;

  private constructor(pieces: Pieces, private readonly hash: IHasher) {
    this.pieces = Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  }

  static async of(pieces: Pieces): Promise<Content> {
    return new Content(pieces, (await createXXHash128()).init());
  }

  /** What is before this offset will not be taken again. */
  forget(below: number): void {
    this.kept = this.kept.filter(({ begin, data }) => begin + data.length > below);
  }

  /** Up to CHUNK_BYTES from `offset` on; empty: the content ends before. One call at a time. */
  async take(offset: number): Promise<Uint8Array> {
    while (this.end <= offset && !this.whole) await this.read(offset);
    const found = this.kept.find(({ begin, data }) => begin <= offset && offset < begin + data.length);
    if (found !== undefined) return found.data.subarray(offset - found.begin);
    if (offset < this.end) {
      throw new MusterError("DATA_LOSS", `the initiator lacks byte ${offset}, which it called durable`);
    }
    return new Uint8Array(0);
  }

  /** All of it, if one chunk holds it. */
  async soleChunk(): Promise<Uint8Array | undefined> {
    const chunk = await this.take(0);
    return (await this.take(chunk.length)).length > 0 ? undefined : chunk;
  }

  /** Of all of it. Only when it is read to its end. */
  get size(): number {
    return this.end;
  }

  /** XXH3-128, big-endian. Only when it is read to its end. */
  get digest(): Buffer {
    this.sum ??= Buffer.from(this.hash.digest("hex"), "hex");
    return this.sum;
  }

  /** Lets go of a file that was not read to its end. */
  async close(): Promise<void> {
    await this.pieces.return?.();
  }

  private async read(keepFrom: number): Promise<void> {
    const chunk = await this.nextChunk();
    this.hash.update(chunk);
    if (this.end + chunk.length > keepFrom) this.kept.push({ begin: this.end, data: chunk });
    this.end += chunk.length;
    this.whole = chunk.length === 0;
  }

  private async nextChunk(): Promise<Uint8Array> {
    // Each piece is copied at once: its owner may fill the same buffer for the next.
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let size = 0;
    while (size < CHUNK_BYTES) {
      if (this.left.length === 0) {
        const piece = await this.nextPiece();
        if (piece === undefined) break;
        this.left = piece;
      }
      const taken = this.left.subarray(0, CHUNK_BYTES - size);
      chunk.set(taken, size);
      size += taken.length;
      this.left = this.left.subarray(taken.length);
    }
    return chunk.subarray(0, size);
  }

  private async nextPiece(): Promise<Uint8Array | undefined> {
    try {
      const next = await this.pieces.next();
      if (next.done) return undefined;
      if (!(next.value instanceof Uint8Array)) {
        throw new TypeError(`the content must be bytes, not ${typeof next.value}`);
      }
      return next.value;
    } catch (error) {
      throw new Unreadable(error);
    }
  }
}
