// RowMerger: adds up the rows of many items in memory, so that a commit touches each row of the
// store once, however many items share it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/report/counted_item.h"
#include "muster/report/shape.h"

namespace muster::report {

// The merged rows of one batch and group. Not thread-safe.
class RowMerger {
 public:
  struct Row {
    const std::vector<std::string>* keys;  // of the first partial row that had them
    std::vector<base::Decimal> measures;   // at the measures' scales
  };

  // `shape` is not owned and outlives the merger.
  explicit RowMerger(const GroupShape* shape) : shape_(shape) {}

  // Adds rows that passed CheckItem; they must outlive the merger. OutOfRange naming the row when a
  // sum overflows: the merger is of no use afterwards.
  absl::Status Add(absl::Span<const PartialRow> rows);

  // In the byte order of their keys.
  std::vector<const Row*> SortedRows() const;

  const GroupShape& shape() const { return *shape_; }

 private:
  absl::Status AddRow(const PartialRow& partial);

  const GroupShape* const shape_;
  absl::flat_hash_map<std::string, Row> rows_;  // by the keys, joined with their lengths
  std::string scratch_;
};

// "group 'by_customer', row (17850.0)": how a message names a row.
std::string RowName(const GroupShape& shape, absl::Span<const std::string> keys);

}  // namespace muster::report
