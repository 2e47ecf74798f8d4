#include "muster/report/counted_item.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::report {
namespace {

absl::Status Mismatch(absl::string_view what, size_t has, size_t due) {
  return absl::InvalidArgumentError(
      absl::StrCat("a row has ", has, " ", what, ", its group ", due));
}

absl::Status CheckRow(const PartialRow& row, const GroupShape& shape) {
  if (row.keys.size() != shape.keys.size()) {
    return Mismatch("keys", row.keys.size(), shape.keys.size());
  }
  if (row.measures.size() != shape.measures.size()) {
    return Mismatch("measures", row.measures.size(), shape.measures.size());
  }
  for (size_t i = 0; i < shape.measures.size(); ++i) {
    if (row.measures[i].scale() <= shape.measures[i].scale) continue;
    if (row.measures[i].TryRescale(shape.measures[i].scale)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("measure '", shape.measures[i].name, "' is ", row.measures[i].ToString(),
                     ", which needs more than ", shape.measures[i].scale, " decimals"));
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const GroupPartial& partial, absl::Span<const GroupShape> groups) {
  for (const GroupShape& shape : groups) {
    if (shape.name != partial.group) continue;
    for (const PartialRow& row : partial.rows) {
      MUSTER_RETURN_IF_ERROR(
          base::Annotate(CheckRow(row, shape), absl::StrCat("group '", shape.name, "'")));
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("its job has no group '", partial.group, "'"));
}

bool CountsAddUp(const CountedItem& item) {
  if (item.transactions < 0 || item.aggregated < 0 || item.rejected < 0) return false;
  if (item.outcome == ItemOutcome::kDeadLettered) {
    return item.aggregated == 0 && item.rejected == 0 && item.groups.empty() &&
           item.rejections.empty();
  }
  return item.aggregated <= item.transactions &&
         item.rejected == item.transactions - item.aggregated &&
         static_cast<size_t>(item.rejected) == item.rejections.size();
}

}  // namespace

absl::string_view ItemOutcomeName(ItemOutcome outcome) {
  return outcome == ItemOutcome::kAggregated ? "aggregated" : "dead-lettered";
}

absl::Status CheckItem(const CountedItem& item, absl::Span<const GroupShape> groups) {
  if (item.index > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("item index ", item.index, " is out of range"));
  }
  if (!CountsAddUp(item)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its counts do not add up: ", item.transactions, " transactions, ", item.aggregated,
        " aggregated, ", item.rejected, " rejected, ", item.rejections.size(), " rejections"));
  }
  for (const GroupPartial& partial : item.groups) {
    MUSTER_RETURN_IF_ERROR(CheckGroup(partial, groups));
  }
  return absl::OkStatus();
}

CountedItem DeadLettered(const CountedItem& item, absl::string_view cause) {
  CountedItem dead;
  static_cast<ItemFacts&>(dead) = item;
  dead.outcome = ItemOutcome::kDeadLettered;
  dead.aggregated = 0;
  dead.rejected = 0;
  dead.cause = std::string(cause);
  return dead;
}

Repeat CompareWithStored(const ItemFacts& stored, const ItemFacts& offered) {
  if (stored.content != offered.content || stored.transactions != offered.transactions) {
    return Repeat::kConflict;
  }
  // Giving up on an item that is counted already, or again, changes nothing.
  if (offered.outcome == ItemOutcome::kDeadLettered) return Repeat::kDuplicate;
  if (stored.result == offered.result) return Repeat::kDuplicate;
  return stored.outcome == ItemOutcome::kDeadLettered ? Repeat::kReplaces : Repeat::kConflict;
}

}  // namespace muster::report
