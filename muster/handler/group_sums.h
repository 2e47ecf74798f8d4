// GroupSums: the rows of one group of the aggregate, added up exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/handler/schema.h"

namespace muster::handler {

// A mergeable row of the aggregate.
struct PartialRow {
  std::vector<std::string> keys;
  std::vector<base::Decimal> measures;  // at the measures' scales
};

struct GroupPartial {
  std::string group;
  std::vector<PartialRow> rows;  // sorted by keys, so that equal results are equal bytes
};

// A key is a label in a report, not a document; each distinct one is held in memory and in the
// store.
inline constexpr size_t kMaxKeyBytes = 1024;

// Makes `value` what `measure` keeps. InvalidArgument when it needs more decimals than that,
// OutOfRange when it is too large; both name the measure.
absl::Status FitMeasure(const MeasureSchema& measure, base::Decimal* value);

// Not thread-safe. Adding to a known row allocates nothing.
class GroupSums {
 public:
  // `schema` is not owned.
  explicit GroupSums(const GroupSchema* schema) : schema_(schema) {}

  // Adds `values` (as FitMeasure yields them) to the row of `keys`; as many of both as the schema
  // has. Adds nothing when it fails: OutOfRange on overflow, InvalidArgument for a key that is too
  // long or not text.
  absl::Status Add(absl::Span<const absl::string_view> keys,
                   absl::Span<const base::Decimal> values);

  // Takes back an earlier Add of the same arguments; a row to which nothing else was added is gone.
  void Subtract(absl::Span<const absl::string_view> keys, absl::Span<const base::Decimal> values);

  // The rows, sorted by keys. None are left here.
  GroupPartial Take();

 private:
  // Makes `row_` the number of the keys' row; a new one if there is none yet.
  absl::Status FindRow(absl::Span<const absl::string_view> keys);
  // Writes the keys into joined_.
  void JoinKeys(absl::Span<const absl::string_view> keys);
  absl::Status CheckKeys(absl::Span<const absl::string_view> keys) const;
  size_t AddRow();

  const GroupSchema* schema_;
  // Row numbers by the row's keys, each with its length before it.
  absl::flat_hash_map<std::string, size_t> rows_;
  std::vector<int64_t> adds_;        // by row: additions that stand
  std::vector<base::Decimal> sums_;  // row r's measures begin at r × measures
  std::string joined_;               // reused for looking up
  // The row that was met last, and its keys: lines of one invoice follow each other.
  std::optional<size_t> row_;
  std::string row_keys_;
};

}  // namespace muster::handler
