// SPDX-License-Identifier: Apache-2.0

// What was counted, and the proof of it.
import { createHash } from "node:crypto";

import { BigNumber } from "bignumber.js";

import type { GroupSchema__Output } from "./generated/muster/v1/GroupSchema";
import type { PartialRow__Output } from "./generated/muster/v1/PartialRow";
import { MusterError } from "./errors";

/** Texts of decimals, numbers that are safe integers, bigints and BigNumbers are exact. */
export type Amount = string | number | bigint | BigNumber;

/** A row of a group: keys that tell it apart, and its measures. */
export interface Row {
  keys: Record<string, string>;
  measures: Record<string, Amount>;
}

/** A row of a report, whose measures are exact. */
export interface ReportRow {
  keys: Record<string, string>;
  measures: Record<string, BigNumber>;
}

/** A number of a group's rows; `scale` is how many decimals are kept, 0 for whole numbers. */
export interface Measure {
  name: string;
  whole: boolean;
  scale: number;
}

/** A table of a job's report. */
export interface Group {
  name: string;
  keys: string[];
  measures: Measure[];
}

/** The proof of where every transaction went: lines "name value", and their SHA-256. */
export interface Receipt {
  text: string;
  checksum: string;
}

export function toGroup(schema: GroupSchema__Output): Group {
  return {
    name: schema.name,
    keys: schema.keys,
    measures: schema.measures.map(({ name, type, scale }) => ({ name, whole: type === "MEASURE_TYPE_INT", scale })),
  };
}

export function toRow(group: Group, row: PartialRow__Output): ReportRow {
  return {
    keys: Object.fromEntries(group.keys.map((key, place) => [key, row.keys[place]])),
    measures: Object.fromEntries(
      group.measures.map(({ name }, place) => [name, new BigNumber(row.measures[place])])),
  };
}

/** DATA_LOSS: the text does not have that checksum. */
export function toReceipt(text: string, checksum: string): Receipt {
  if (createHash("sha256").update(text).digest("hex") !== checksum) {
    throw new MusterError("DATA_LOSS", "the receipt does not have its checksum");
  }
  return { text, checksum };
}
