#!/usr/bin/env bash
# nach2 0.5.1 (ACH payments in NACHA's format for JavaScript): addenda records are in the count of their batch, but not
# in that of the file, and not in the blocks of ten lines.
#
# Guess: two payments with an addenda record each count 4 in the batch's control record and 4 in the file's, which
# is the sum of the batches. Lines of nines fill the file to ten. (The class of addenda is in the package's lib only.)
# Seen: the batch has 4, and the file 2. It has four lines of nines and so twelve lines in all, which the file says are
# one block of ten.
#
# Who it hurts: whoever sends remittance data with payments: a bank that checks the totals refuses the file. Files
# without addenda are right, as those of tests are.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" nach2@0.5.1
cat > "$work/seen.cjs" << 'PROGRAM'
const nach = require("nach2");
const Addenda = require("nach2/lib/entry-addenda");

const bank = { immediateDestination: "081000032", immediateDestinationName: "BANK" };
const file = new nach.File({ ...bank, immediateOrigin: "123456789", immediateOriginName: "ME", referenceCode: "A" });
const batch = new nach.Batch({
  serviceClassCode: "220",
  standardEntryClassCode: "CCD",
  companyName: "ME",
  companyIdentification: "123456789",
  companyEntryDescription: "PAY",
  companyDescriptiveDate: "NOV 30",
  effectiveEntryDate: new Date(2026, 10, 30),
  originatingDFI: "081000032",
});
for (const idNumber of ["1", "2"]) {
  const payee = { receivingDFI: "081000210", DFIAccount: "12345", individualName: "A", discretionaryData: "A1" };
  const entry = new nach.Entry({ ...payee, idNumber, amount: "10.00", transactionCode: "22" });
  entry.addAddenda(new Addenda({ paymentRelatedInformation: "INVOICE " + idNumber }));
  batch.addEntry(entry);
}
file.addBatch(batch);
file.generateFile((text) => {
  const lines = text.split(/\r?\n/);
  const of = (type, start, length) => Number(lines.find((line) => line[0] === type).substr(start, length));
  console.log(of("8", 4, 6), of("9", 13, 8), of("9", 7, 6), lines.length);
});
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "nach2 0.5.1, entries and addenda by the batch and by the file, blocks by the file, and lines: $seen"
[ "$seen" = "4 2 1 12" ]
