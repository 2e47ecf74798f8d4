// The digests of a receipt: SHA-256 over the stored rows in their order, each as one line of text.
// Fields are separated by a tab; backslash, tab, line feed and carriage return inside of a field
// are written \\, \t, \n and \r; times are microseconds since 1970; fingerprints are 32 hex digits.
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
// rejections_sha256. FailedPrecondition: `rejected` is not how many are stored.
absl::StatusOr<std::string> DigestRejections(ReportReader& reader, uint64_t batch,
                                             int64_t rejected);

// Tally: what of a batch is in the report at one moment, complete or not.

struct Tally {
  Progress progress;
  std::map<std::string, int64_t> items_by_version;  // handler version → items
  // Of the rows that are there (digest.h).
  std::string items_sha256;
  std::string rows_sha256;
  std::string rejections_sha256;
};

// NotFound: the report does not know the batch. DataLoss: the running totals are not what its rows
// add up to.
absl::StatusOr<Tally> TakeTally(ReportReader& reader, uint64_t batch);

// Of a batch that the report does not know: nothing of it was ever counted.
Tally EmptyTally(uint64_t batch);

// Working out a batch's receipt from the stored rows: to issue it, and later to check it.

// The receipt that the rows give, with `revision`. FailedPrecondition naming the numbers when an
// item or a transaction of `facts` is missing, or one is there that should not be.
absl::StatusOr<Receipt> BuildReceipt(ReportReader& reader, const BatchFacts& facts,
                                     int64_t revision);

// True when both prove the same: all is equal but the revision, and the duplicates and conflicts,
// which are dropped and kept out at any time without changing what counts.
bool ProvesTheSame(const Receipt& a, const Receipt& b);

struct Verification {
  Receipt receipt;                       // as stored; undefined when it could not be read
  std::vector<std::string> differences;  // one line each, naming what differs; empty: all is well

  bool ok() const { return differences.empty(); }
};

// Works everything out again from the stored rows and names what is not as the stored receipt says.
// NotFound: the batch has no receipt yet. Damage of rows is a difference, not an error.
absl::StatusOr<Verification> VerifyReceipt(ReportReader& reader, uint64_t batch);

}  // namespace muster::report
