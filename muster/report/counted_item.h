// SPDX-License-Identifier: Apache-2.0

// What the report keeps of a batch: the groups of its job, and its items with their rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/base/fingerprint.h"
#include "muster/base/output_record.h"

namespace muster::report {

struct MeasureShape {
  std::string name;
  bool is_int = true;  // a whole number of 64 bits; else a decimal of up to 38 digits
  int scale = 0;       // decimals kept; 0 when is_int

  friend bool operator==(const MeasureShape&, const MeasureShape&) = default;
};

struct GroupShape {
  std::string name;
  std::vector<std::string> keys;       // at least one
  std::vector<MeasureShape> measures;  // at least one

  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// What the report must know of a batch before it can count items.
struct BatchShape {
  uint64_t batch = 0;
  std::string job;
  std::string job_revision;
  std::vector<GroupShape> groups;
  // The data directory of the initiator that has the batch; empty: there is only one initiator, or
  // an older muster began the batch.
  std::string owner = "";
  std::vector<base::OutputColumn> outputs = {};  // of the records that are kept; none: no records
  std::vector<uint64_t> replaces = {};           // earlier batches in whose place it counts
};

// Names become names of columns and tables; see base/report_limits.h for how many there may be.
inline constexpr size_t kMaxNameBytes = 64;

// InvalidArgument naming the group and what is wrong with it: a name that is empty, too long, or
// used twice (letter case aside), no key, no measure, a scale out of 0..18; of outputs, too.
absl::Status ValidateBatchShape(const BatchShape& shape);

// CountedItem: the result of one work item, as it is offered to the report.

enum class ItemOutcome {
  kAggregated = 1,    // its rows count; single transactions may have been rejected
  kDeadLettered = 2,  // given up as a whole, with a cause
};

// "aggregated", "dead-lettered".
absl::string_view ItemOutcomeName(ItemOutcome outcome);

// A mergeable row of a group: keys and measures in the shape's order.
struct PartialRow {
  std::vector<std::string> keys;
  std::vector<base::Decimal> measures;
};

struct GroupPartial {
  std::string group;
  std::vector<PartialRow> rows;
};

// A transaction that was refused.
struct Rejection {
  int64_t line = 0;  // 1-based physical line of the input
  std::string reason;

  friend bool operator==(const Rejection&, const Rejection&) = default;
};

// What is known of an item except its rows and rejections. (batch, index) is its identity.
struct ItemFacts {
  uint64_t batch = 0;
  uint64_t index = 0;  // from 0
  ItemOutcome outcome = ItemOutcome::kAggregated;
  int64_t transactions = 0;  // = aggregated + rejected, or all of them dead-lettered
  int64_t aggregated = 0;
  int64_t rejected = 0;
  base::Fingerprint128 content;  // of the slice of input that it is
  base::Fingerprint128 result;   // of rows, rejections and records; all zero when dead-lettered
  int64_t attempts = 0;          // handler starts that it took
  std::string handler_version;   // that computed it, or gave it up
  std::string worker;
  std::string cause;  // why it was dead-lettered; else empty
};

struct CountedItem : ItemFacts {
  std::vector<GroupPartial> groups;   // none when dead-lettered
  std::vector<Rejection> rejections;  // `rejected` of them, in order of line
  // In order of line; nullopt: dead-lettered, or of a job without outputs.
  std::optional<std::vector<base::OutputRecord>> outputs = std::nullopt;
};

// An item as the report keeps it.
struct ItemRow : ItemFacts {
  absl::Time counted;
  // As ReportReader::DeadLetters answers it: the batch that retries the item; 0: none.
  uint64_t retried_in = 0;
};

// InvalidArgument when the item contradicts itself (its counts do not add up) or does not fit the
// groups of its batch (an unknown group, a number of keys or measures, more decimals than are
// kept) or its outputs (records where there are no columns, columns and nothing said of records,
// a record of another width).
absl::Status CheckItem(const CountedItem& item, absl::Span<const GroupShape> groups,
                       absl::Span<const base::OutputColumn> outputs = {});

// The item as dead-lettered for `cause`, with nothing aggregated. It keeps the fingerprint of its
// result, so that the same result is recognized when it is delivered again.
CountedItem DeadLettered(const CountedItem& item, absl::string_view cause);

// The relation of an offered item to the stored row of the same identity.
enum class Repeat {
  kDuplicate,  // says the same again, or less: dropped
  kConflict,   // another content under the same identity: kept out
  kReplaces,   // aggregates an item that had been dead-lettered (after a redrive)
};
Repeat CompareWithStored(const ItemFacts& stored, const ItemFacts& offered);

// RowMerger: adds up the rows of many items in memory, so that a commit touches each row of the
// store once, however many items share it.

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
