// SPDX-License-Identifier: Apache-2.0

// Checks every stored record of a ledger, and repairs it. A batch's source can give its items once
// more, so a repair may forget items, but never make one up.
//
//   damaged or missing   a repair
//   record of a batch    is made again of its copy; without one, the batch is taken away, and its
//                        input makes a new one
//   copy of a record     is made again of the record
//   progress             of a cancelled batch is made again of the copy of its record; of another,
//                        of the items: the batch is open, and its run goes on. Where an older
//                        muster cancelled it, the run may find in the report that it is
//   items                these and the later ones of the batch are taken away; its run splits its
//                        source from there on, as it did before. One that is cancelled stays so
//   request              is made again of the batches
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/os/quarantine.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace muster::ledger::rocksdb {

struct LedgerCheckOptions {
  os::CheckOptions check;
  base::Clock* clock = nullptr;   // not owned
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
};

// A batch that the ledger knows, after a repair if it takes one.
struct CheckedBatch {
  uint64_t number = 0;
  uint64_t items = 0;
  bool complete = false;
  bool items_deleted = false;  // as its retention says
};

struct LedgerSummary : os::CheckSummary {
  uint64_t last_batch = 0;            // the highest number that any record speaks of
  std::vector<CheckedBatch> batches;  // in order of number
};

// NotFound: there is no ledger. FailedPrecondition: a process has it open. DataLoss: it cannot be
// read; the findings say why.
absl::StatusOr<LedgerSummary> CheckLedger(const std::string& dir,
                                          const LedgerCheckOptions& options);

}  // namespace muster::ledger::rocksdb
