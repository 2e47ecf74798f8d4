#!/usr/bin/env bash
# @dintero/money 1.1.12 (amounts of any size for JavaScript): in languages that write the minus sign as a character of
# its own (U+2212), fromLocaleString() leaves it out. -5.50 that toLocaleString() writes in Norwegian is 5.50 again.
#
# Guess: -5.50: the text comes from the library, and is read with the same locale. Else an error.
# Seen: 5.50, in Norwegian (no-NB, as the README has it), Swedish, Finnish and Slovenian. In German and in English,
# which have the hyphen for a minus, it is -5.50.
#
# Who it hurts: whoever lets people see and change an amount: a credit note that is opened and saved becomes a bill.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @dintero/money@1.1.12
cat > "$work/seen.cjs" << 'PROGRAM'
const { Money } = require("@dintero/money");

const back = (locale) => {
  const text = Money.of(-5.5, "NOK").toLocaleString(locale);
  return `${locale} ${text.charCodeAt(0).toString(16)} ${Money.fromLocaleString(text, "NOK", locale)}`;
};
console.log(["no-NB", "sv-SE", "fi-FI", "sl-SI", "de-DE", "en-US"].map(back).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "@dintero/money 1.1.12, the character of the minus, and what -5.5 comes back as: $seen"
[ "$seen" = "no-NB 2212 5.50, sv-SE 2212 5.50, fi-FI 2212 5.50, sl-SI 2212 5.50, de-DE 2d -5.50, en-US 2d -5.50" ]
