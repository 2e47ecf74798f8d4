// Tally: what of a batch is in the report at one moment, complete or not.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"

namespace muster::report {

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

}  // namespace muster::report
