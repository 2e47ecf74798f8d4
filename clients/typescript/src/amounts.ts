// SPDX-License-Identifier: Apache-2.0

// Exact amounts, within the bounds that muster's processors have.
import { BigNumber } from "bignumber.js";

import { Amount, Measure } from "./report";

const MAX_DIGITS = 38;
const DECIMAL = /^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$/;

// Of its own, so that what a program sets for its BigNumbers does not matter here.
const Exact = BigNumber.clone({ EXPONENTIAL_AT: 1e9, RANGE: 1e9 });
const WHOLE_END = new Exact(2).pow(63);

/** A number, a key or a text that the job does not take; its message says why as a rejection would. */
export class Unfit extends Error {
  override readonly name = "Unfit";
}

function exact(measure: Measure, amount: Amount): BigNumber {
  if (typeof amount === "number") {
    if (!Number.isSafeInteger(amount)) {
      throw new TypeError(`${measure.name}: ${amount} is not exact: pass a text, a bigint or a BigNumber`);
    }
  } else if (typeof amount === "string") {
    if (!DECIMAL.test(amount)) throw new Unfit(`${measure.name}: not a number`);
  } else if (typeof amount !== "bigint" && !BigNumber.isBigNumber(amount)) {
    throw new TypeError(`${measure.name}: a ${typeof amount} is no amount`);
  }
  const number = new Exact(typeof amount === "bigint" ? amount.toString() : amount);
  if (!number.isFinite()) throw new Unfit(`${measure.name}: not a number`);
  return number;
}

/** The sum of what was there before and `more`. Unfit: the measure does not take it. */
export function fitted(measure: Measure, more: Amount, before: BigNumber = new Exact(0)): BigNumber {
  const number = exact(measure, more);
  if ((number.e ?? 0) > MAX_DIGITS) throw new Unfit(`${measure.name}: overflows`);
  if ((number.decimalPlaces() ?? 0) > measure.scale) {
    throw new Unfit(`${measure.name}: needs more than ${measure.scale} decimals`);
  }
  const after = before.plus(number);
  const fits = measure.whole
    ? after.lt(WHOLE_END) && after.gte(WHOLE_END.negated())
    : after.isZero() || (after.e ?? 0) < MAX_DIGITS - measure.scale;
  if (!fits) throw new Unfit(`${measure.name}: overflows`);
  return after;
}
