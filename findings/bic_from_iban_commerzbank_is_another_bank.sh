#!/usr/bin/env bash
# bic-from-iban 1.0.0 (the code of the bank of an account, for JavaScript): an account of one German bank gets the code
# of another.
#
# Guess: COBADEFFXXX for the well-known example of the Commerzbank, which iban-to-bic 1.4.0 has, or nothing.
# Seen: ESSEDE5F362. Of the eight digits of a German bank it takes the first four, 3704, and with them the line 3704 of
# a list, whatever bank that is. DE02120300000000202051, of the Deutsche Kreditbank (BYLADEM1001), is DRESDEFF834.
#
# Who it hurts: payments that carry both numbers: they are refused, or take the way to a bank that has no such account.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" bic-from-iban@1.0.0 iban-to-bic@1.4.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { getBIC } = require("bic-from-iban");
const { ibanToBic } = require("iban-to-bic");

const ibans = ["DE89370400440532013000", "DE02120300000000202051"];
console.log(ibans.map((iban) => `${getBIC(iban)} ${ibanToBic(iban)}`).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "bic-from-iban 1.0.0 and iban-to-bic 1.4.0: $seen"
[ "$seen" = "ESSEDE5F362 COBADEFFXXX, DRESDEFF834 BYLADEM1001" ]
