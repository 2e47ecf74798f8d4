// SPDX-License-Identifier: Apache-2.0

// The retail job: the items of a file, and a worker's result for an item. It rejects the same lines
// as examples/retail/handler.cc.
'use strict';

const { readFileSync } = require('node:fs');

const ITEM_LINES = 500;
const COLUMNS = ['Quantity', 'UnitPrice', 'InvoiceDate', 'CustomerID', 'Country'];
const WHOLE_NUMBER = /^[+-]?[0-9]+$/;
const DECIMAL_NUMBER = /^([+-]?)([0-9]*)(?:\.([0-9]{1,18}))?$/;
const TIME = /^([0-9]{4})-([0-9]{2})-([0-9]{2}) ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$/;
const PRICE_DECIMALS = 18;
const REVENUE_DECIMALS = 3;
const TOO_FINE = 10n ** BigInt(PRICE_DECIMALS - REVENUE_DECIMALS);
const MAX_DIGITS = 38;
const REMEMBERED = 65_536;

// Yields the items. Each item is CSV by itself: the header line, and its own lines.
function* items(path) {
  const text = readFileSync(path, 'utf8');
  const start = text.indexOf('\n') + 1;
  const header = text.slice(0, start);
  let lines = 0;
  let begin = start;
  for (const end of recordEnds(text, start)) {
    lines += 1;
    if (lines % ITEM_LINES === 0 || end === text.length) {
      yield header + text.slice(begin, end);
      begin = end;
    }
  }
}

// Yields the ends of records. A line feed within quotes does not end a record.
function* recordEnds(text, start) {
  let quoted = false;
  for (let at = start; at < text.length;) {
    const end = text.indexOf('\n', at) + 1 || text.length;
    quoted = hasOddQuotes(text.slice(at, end)) !== quoted;
    if (!quoted) {
      yield end;
    }
    at = end;
  }
  if (quoted) {
    throw new Error('a quote is never closed');
  }
}

function hasOddQuotes(text) {
  return text.includes('"') && text.split('"').length % 2 === 0;
}

// An item's totals as JSON: rows of keys, revenue in thousandths, units and lines.
function bill(item) {
  const records = recordsOf(item);
  const header = records.next().value;
  const [quantity, price, date, customer, country] = COLUMNS.map((name) => placeOf(header, name));
  const places = new Map();
  const customers = new Map();
  let transactions = 0;
  let rejected = 0;
  for (const fields of records) {
    transactions += 1;
    const amounts = fields.length === header.length && amountsOf(fields[quantity], fields[price]);
    const month = amounts && monthOf(fields[date]);
    if (month) {
      addTo(places, [fields[country], month], amounts);
      addTo(customers, [fields[customer]], amounts);
    } else {
      rejected += 1;
    }
  }
  return JSON.stringify({
    transactions, rejected, by_country_month: [...rows(places)], by_customer: [...rows(customers)],
  });
}

function placeOf(header, name) {
  const place = header.indexOf(name);
  if (place < 0) {
    throw new Error(`no column ${name}`);
  }
  return place;
}

function* recordsOf(text) {
  let begin = 0;
  for (const end of recordEnds(text, 0)) {
    const record = text.slice(begin, end).replace(/\r?\n?$/, '');
    begin = end;
    if (record !== '') {
      yield fieldsOf(record);
    }
  }
}

function fieldsOf(record) {
  const pieces = record.split(',');
  if (!record.includes('"')) {
    return pieces;
  }
  const fields = [];
  let open = '';
  for (const piece of pieces) {
    open += piece;
    if (hasOddQuotes(open)) {
      open += ',';
    } else {
      fields.push(open.startsWith('"') ? open.slice(1, -1).replaceAll('""', '"') : open);
      open = '';
    }
  }
  return fields;
}

function addTo(sumsByKey, keys, { revenue, units }) {
  const key = keys.join('\n');
  const sums = sumsByKey.get(key);
  if (sums === undefined) {
    sumsByKey.set(key, { keys, revenue, units, lines: 1 });
    return;
  }
  sums.revenue += revenue;
  sums.units += units;
  sums.lines += 1;
}

function* rows(sumsByKey) {
  for (const { keys, revenue, units, lines } of sumsByKey.values()) {
    yield [keys, String(revenue), String(units), lines];
  }
}

// Remembers the answers to earlier questions.
function remembering(answer) {
  const answers = new Map();
  return (...words) => {
    const question = words.join('\n');
    let known = answers.get(question);
    if (known === undefined) {
      known = answer(...words);
      if (answers.size === REMEMBERED) {
        answers.clear();
      }
      answers.set(question, known);
    }
    return known;
  };
}

// Returns null when the quantity or the price is not valid.
const amountsOf = remembering((quantity, price) => {
  const [, sign, whole = '', fraction = ''] = DECIMAL_NUMBER.exec(price) ?? [];
  if (!WHOLE_NUMBER.test(quantity) || !(whole + fraction)) {
    return null;
  }
  const units = BigInt(quantity.replace('+', ''));
  const size = BigInt(whole + fraction.padEnd(PRICE_DECIMALS, '0'));
  const product = units * (sign === '-' ? -size : size);
  const revenue = product / TOO_FINE;
  // The product may have as many digits as it could have without the cut to thousandths.
  const cut = Math.max(fraction.replace(/0+$/, '').length - REVENUE_DECIMALS, 0);
  const limit = 10n ** BigInt(MAX_DIGITS - cut);
  const fits = units === BigInt.asIntN(64, units) &&
    (whole + fraction).replace(/^0+/, '').length <= MAX_DIGITS &&
    revenue * TOO_FINE === product && -limit < revenue && revenue < limit;
  return fits ? { revenue, units } : null;
});

// Returns null when the date is not valid.
const monthOf = remembering((date) => {
  const [, year, month, day] = TIME.exec(date)?.map(Number) ?? [];
  // The calendar repeats every 400 years, and Date takes a year below 100 for one of the 20th
  // century.
  const last = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  return 1 <= month && month <= 12 && 1 <= day && day <= last ? date.slice(0, 7) : null;
});

module.exports = { items, bill };
