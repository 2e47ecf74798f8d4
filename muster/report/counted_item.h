// CountedItem: what became of one work item, as it is offered to the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/base/fingerprint.h"
#include "muster/report/shape.h"

namespace muster::report {

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

// What is known of an item but for its rows and rejections. (batch, index) is its identity.
struct ItemFacts {
  uint64_t batch = 0;
  uint64_t index = 0;  // from 0
  ItemOutcome outcome = ItemOutcome::kAggregated;
  int64_t transactions = 0;  // = aggregated + rejected, or all of them dead-lettered
  int64_t aggregated = 0;
  int64_t rejected = 0;
  base::Fingerprint128 content;  // of the slice of input that it is
  base::Fingerprint128 result;   // of its rows and rejections; all zero when dead-lettered
  int64_t attempts = 0;          // handler starts that it took
  std::string handler_version;   // that computed it, or gave it up
  std::string worker;
  std::string cause;  // why it was dead-lettered; else empty
};

struct CountedItem : ItemFacts {
  std::vector<GroupPartial> groups;   // none when dead-lettered
  std::vector<Rejection> rejections;  // `rejected` of them, in order of line
};

// An item as the report keeps it.
struct ItemRow : ItemFacts {
  absl::Time counted;
};

// InvalidArgument when the item contradicts itself (its counts do not add up) or does not fit the
// groups of its batch (an unknown group, a number of keys or measures, more decimals than are
// kept).
absl::Status CheckItem(const CountedItem& item, absl::Span<const GroupShape> groups);

// The item, dead-lettered for `cause`: nothing of it is aggregated. Its result's fingerprint stays,
// so that the same result, delivered again, is known.
CountedItem DeadLettered(const CountedItem& item, absl::string_view cause);

// What an offered item is to the row that is already there.
enum class Repeat {
  kDuplicate,  // says the same again, or less: dropped
  kConflict,   // another content under the same identity: kept out
  kReplaces,   // aggregates an item that had been dead-lettered (after a redrive)
};
Repeat CompareWithStored(const ItemFacts& stored, const ItemFacts& offered);

}  // namespace muster::report
