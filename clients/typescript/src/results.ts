// SPDX-License-Identifier: Apache-2.0

// What a handler makes of an item: exact sums, and the lines that it rejects.
import type { BigNumber } from "bignumber.js";

import type { HandlerResult } from "./generated/muster/v1/HandlerResult";
import type { OutputRecord } from "./generated/muster/v1/OutputRecord";
import { fitted, Unfit } from "./amounts";
import { fittedText, OutputColumn, OutputValues, toFields, toWords } from "./output";
import { Group, Row } from "./report";

// As muster's processors take them.
const MAX_KEY_BYTES = 1024;

interface Sum {
  keys: string[];
  measures: BigNumber[];
}

/** Adds up an item; each item has its own. */
export class Results {
  private readonly sums = new Map<string, Map<string, Sum>>();
  private readonly rejected = new Map<number, string>();
  private readonly outputs: (OutputRecord & { line: number })[] = [];

  constructor(private readonly groups: ReadonlyMap<string, Group>, private readonly lines: ReadonlySet<number>,
    private readonly columns: OutputColumn[] = []) {}

  /**
   * Adds a row to each of these groups, or to none.
   *
   * Unfit, to be told by `reject`: a text that is no number, a measure with more decimals than its group
   * keeps, a sum that does not fit, a key of more than 1,024 bytes, or with a NUL or half a character. TypeError: the program is wrong.
   */
  add(rows: Record<string, Row>): void {
    const after = Object.entries(rows).map(([name, row]) => [name, this.with(name, row)] as const);
    for (const [name, sum] of after) {
      const there = this.sums.get(name) ?? new Map<string, Sum>();
      this.sums.set(name, there.set(JSON.stringify(sum.keys), sum));
    }
  }

  /** The transaction that begins at `line` does not count. */
  reject(line: number, reason: string): void {
    this.check(line);
    if (!this.rejected.has(line)) this.rejected.set(line, toWords(reason));
  }

  /**
   * Returns a record for the transaction that begins at `line`: a value for each of the job's output
   * columns, null where a number is absent. The records of lines that are rejected are left out.
   *
   * Unfit, to be told by `reject`: a number that its column does not take, text with a NUL or half a
   * character, a record above 64 KiB. TypeError: the program is wrong.
   */
  output(line: number, values: OutputValues): void {
    this.check(line);
    this.outputs.push({ line, fields: toFields(this.columns, values) });
  }

  toProto(): HandlerResult {
    return {
      groups: [...this.sums].map(([group, rows]) => ({
        group,
        rows: [...rows.values()].map(({ keys, measures }) => ({
          keys,
          measures: measures.map((sum, place) => sum.toFixed(this.groups.get(group)?.measures[place].scale ?? 0)),
        })),
      })),
      rejected: [...this.rejected].map(([line, reason]) => ({ line, reason })),
      outputs: this.outputs.filter(({ line }) => !this.rejected.has(line)),
    };
  }

  private check(line: number): void {
    if (!this.lines.has(line)) throw new TypeError(`no transaction begins at line ${line}`);
  }

  private with(name: string, row: Row): Sum {
    const group = this.groups.get(name);
    const names = group?.measures.map((measure) => measure.name) ?? [];
    if (group === undefined || !sameNames(row.keys, group.keys) || !sameNames(row.measures, names)) {
      throw new TypeError(`${name} is no group of the job, or its row has other keys or measures`);
    }
    const keys = group.keys.map((key) => fitKey(key, row.keys[key]));
    const before = this.sums.get(name)?.get(JSON.stringify(keys));
    return {
      keys,
      measures: group.measures.map((measure, place) =>
        fitted(measure, row.measures[measure.name], before?.measures[place])),
    };
  }
}

function sameNames(row: Record<string, unknown>, names: string[]): boolean {
  return Object.keys(row).length === names.length && names.every((name) => Object.hasOwn(row, name));
}

function fitKey(name: string, key: string): string {
  if (typeof key !== "string") throw new TypeError(`${name}: a key is a string`);
  if (Buffer.byteLength(fittedText(name, key)) > MAX_KEY_BYTES) throw new Unfit(`${name}: longer than ${MAX_KEY_BYTES} bytes`);
  return key;
}
