// SPDX-License-Identifier: Apache-2.0

// Audits a report: digests, Tally, and making and verifying receipts.
//
// A digest is the SHA-256 over the stored rows in their order, each as one line of text. Fields are
// separated by a tab; backslash, tab, line feed and carriage return inside of a field are written
// \\, \t, \n and \r; times are microseconds since 1970; fingerprints are 32 hex digits.
//
//   items_sha256        index outcome transactions aggregated rejected content result attempts
//                       handler_version worker cause counted
//   rows_sha256         group key… measure…          groups in the job's order, rows by their keys
//   rejections_sha256   item line reason
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/report/counted_item.h"
#include "muster/report/receipt.h"
#include "muster/report/report_store.h"

namespace muster::report {

// Takes rows in order. Not thread-safe.
class RowDigest {
 public:
  void Add(const ItemRow& item);
  void Add(absl::string_view group, const GroupRow& row);
  void Add(const RejectionRow& rejection);

  std::string Hex() const { return sha_.HexDigest(); }

 private:
  void Field(absl::string_view text);
  void Number(int64_t number);
  void EndRow();

  std::string line_;
  base::Sha256 sha_;
};

// rows_sha256 of a batch.
absl::StatusOr<std::string> DigestRows(ReportReader& reader, uint64_t batch);
// rejections_sha256. FailedPrecondition: the number of stored rejections is not `rejected`.
absl::StatusOr<std::string> DigestRejections(ReportReader& reader, uint64_t batch,
                                             int64_t rejected);

// Tally: what the report holds of a batch at one moment, complete or not.

struct Tally {
  Progress progress;
  std::map<std::string, int64_t> items_by_version;  // handler version → items
  // Digests of the rows that the report holds.
  std::string items_sha256;
  std::string rows_sha256;
  std::string rejections_sha256;
};

// NotFound: the report does not know the batch. DataLoss: its rows do not add up to the running
// totals.
absl::StatusOr<Tally> TakeTally(ReportReader& reader, uint64_t batch);

// The tally of a batch that the report does not know: none of its items was ever counted.
Tally EmptyTally(uint64_t batch);

// The receipt that the stored rows give, with `revision`. FailedPrecondition naming the numbers
// when an item or a transaction of `facts` is missing, or the report has one too many.
absl::StatusOr<Receipt> BuildReceipt(ReportReader& reader, const BatchFacts& facts,
                                     int64_t revision);

// Whether both receipts prove the same. Revision, duplicates and conflicts may differ: the last two
// change whenever a result is dropped or kept out, which does not change what counts.
bool ProvesTheSame(const Receipt& a, const Receipt& b);

struct Verification {
  Receipt receipt;                       // as stored; undefined when it could not be read
  std::vector<std::string> differences;  // one line each, naming what differs; empty: all is well

  bool ok() const { return differences.empty(); }
};

// Builds the receipt again from the stored rows and names what differs from the stored receipt.
// NotFound: the batch has no receipt yet. Damaged rows are a difference, not an error.
absl::StatusOr<Verification> VerifyReceipt(ReportReader& reader, uint64_t batch);

}  // namespace muster::report
