// SPDX-License-Identifier: Apache-2.0

// Output records: what handlers return for single transactions.
import { BigNumber } from "bignumber.js";

import type { OutputColumn__Output } from "./generated/muster/v1/OutputColumn";
import type { OutputRecord__Output } from "./generated/muster/v1/OutputRecord";
import { fitted, Unfit } from "./amounts";
import { toNumber } from "./protos";
import { Amount } from "./report";

// As muster's processors count a record's bytes, and how many they take.
const MAX_RECORD_BYTES = 64 << 10;
const FIELD_OVERHEAD_BYTES = 4;
const MAX_WORDS = 1000; // characters, of which 512 bytes are kept

/** A column of a job's output records; `scale` is how many decimals are kept. */
export interface OutputColumn {
  name: string;
  kind: "text" | "int" | "decimal";
  scale: number;
}

/**
 * A record that the transaction at `line` of the input gave, by columns: texts are strings, whole numbers
 * bigints, decimals BigNumbers, and absent numbers null.
 */
export interface OutputRecord {
  line: number;
  values: Record<string, string | bigint | BigNumber | null>;
}

/** What a handler returns for a transaction: a string of each text column, an amount or null of the others. */
export type OutputValues = Record<string, Amount | null>;

const KINDS: Record<string, OutputColumn["kind"]> = { OUTPUT_TYPE_INT: "int", OUTPUT_TYPE_DECIMAL: "decimal" };

export function toColumns(schema: OutputColumn__Output[]): OutputColumn[] {
  return schema.map(({ name, type, scale }) => ({ name, kind: KINDS[type] ?? "text", scale }));
}

export function toRecord(columns: OutputColumn[], { line, fields }: OutputRecord__Output): OutputRecord {
  const values = columns.map((column, place) => [column.name, toValue(column, fields[place])] as const);
  return { line: toNumber(line), values: Object.fromEntries(values) };
}

function toValue({ kind }: OutputColumn, field: string): string | bigint | BigNumber | null {
  if (kind === "text") return field;
  if (field === "") return null;
  return kind === "int" ? BigInt(field) : new BigNumber(field);
}

/** TypeError: the program is wrong. Unfit: a value that its column does not take. */
export function toFields(columns: OutputColumn[], values: OutputValues): string[] {
  const named = columns.every(({ name }) => Object.hasOwn(values, name));
  if (!named || Object.keys(values).length !== columns.length) {
    throw new TypeError(`a record has the columns ${columns.map(({ name }) => name).join(", ")}`);
  }
  const fields = columns.map((column) => toField(column, values[column.name]));
  const bytes = fields.reduce(
    (sum, field) => sum + Buffer.byteLength(field) + FIELD_OVERHEAD_BYTES, FIELD_OVERHEAD_BYTES);
  if (bytes > MAX_RECORD_BYTES) throw new Unfit(`a record of ${bytes} bytes; at most ${MAX_RECORD_BYTES}`);
  return fields;
}

/**
 * Words that a message can have, the first of them: one that is too large ends a call. Half a character, as of a
 * text that was cut within one, becomes another one. A receiver refuses all of a message for it.
 */
export function toWords(reason: unknown): string {
  let text = "no words";
  try {
    text = String(reason);
  } catch {} // an object that is none of a class
  return wellFormed(text.slice(0, MAX_WORDS));
}

function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

/** Unfit: no message, or no report, can have the text. */
export function fittedText(name: string, text: string): string {
  if (wellFormed(text) !== text) throw new Unfit(`${name}: not UTF-8 text`);
  if (text.includes("\0")) throw new Unfit(`${name}: a NUL is not allowed`);
  return text;
}

function toField(column: OutputColumn, value: Amount | null): string {
  const { name, kind, scale } = column;
  if (kind === "text") {
    if (typeof value !== "string") throw new TypeError(`${name}: a ${typeof value} is no text`);
    return fittedText(name, value);
  }
  return value === null ? "" : fitted({ name, whole: kind === "int", scale }, value).toFixed(scale);
}
