// Working out a batch's receipt from the stored rows: to issue it, and later to check it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/report/receipt.h"
#include "muster/report/report_store.h"

namespace muster::report {

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
