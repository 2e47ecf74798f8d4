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
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/report/counted_item.h"
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

}  // namespace muster::report
