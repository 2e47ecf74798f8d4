// SPDX-License-Identifier: Apache-2.0
#include "muster/report/counted_item.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/decimal.h"
#include "muster/base/report_limits.h"
#include "muster/base/status.h"

namespace muster::report {

namespace {

using Names = absl::flat_hash_set<std::string>;

absl::Status Claim(absl::string_view name, absl::string_view what, Names* taken) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " name '", name, "' must have 1 to ", kMaxNameBytes, " bytes"));
  }
  if (name.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(what, " name contains a NUL byte"));
  }
  // SQL takes Country and country for one column.
  if (!taken->insert(absl::AsciiStrToLower(name)).second) {
    return absl::InvalidArgumentError(absl::StrCat(what, " name '", name, "' is used twice"));
  }
  return absl::OkStatus();
}

absl::Status ValidateScale(const MeasureShape& measure) {
  const int most = measure.is_int ? 0 : base::Decimal::kMaxScale;
  if (measure.scale >= 0 && measure.scale <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("measure '", measure.name, "' has scale ",
                                                 measure.scale, ", which is not in 0..", most));
}

absl::Status ValidateGroup(const GroupShape& group) {
  if (group.keys.empty()) return absl::InvalidArgumentError("a group needs a key");
  if (group.measures.empty()) return absl::InvalidArgumentError("a group needs a measure");
  if (group.keys.size() + group.measures.size() > base::kMaxGroupColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has at most ", base::kMaxGroupColumns, " keys and measures"));
  }
  Names columns;
  for (const std::string& key : group.keys) {
    MUSTER_RETURN_IF_ERROR(Claim(key, "key", &columns));
  }
  for (const MeasureShape& measure : group.measures) {
    MUSTER_RETURN_IF_ERROR(Claim(measure.name, "measure", &columns));
    MUSTER_RETURN_IF_ERROR(ValidateScale(measure));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateBatchShape(const BatchShape& shape) {
  if (shape.batch > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return absl::InvalidArgumentError(absl::StrCat("batch ", shape.batch, " is out of range"));
  }
  if (shape.job.empty() || shape.job_revision.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch ", shape.batch, " names no job or no job revision"));
  }
  if (shape.groups.size() > base::kMaxGroups) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job has at most ", base::kMaxGroups, " groups"));
  }
  Names names;
  for (const GroupShape& group : shape.groups) {
    MUSTER_RETURN_IF_ERROR(Claim(group.name, "group", &names));
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(ValidateGroup(group), absl::StrCat("group '", group.name, "'")));
  }
  if (shape.outputs.size() > base::kMaxOutputColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job has at most ", base::kMaxOutputColumns, " output columns"));
  }
  Names columns;
  for (const base::OutputColumn& column : shape.outputs) {
    MUSTER_RETURN_IF_ERROR(Claim(column.name, "output column", &columns));
    const int most =
        column.type == base::OutputColumn::Type::kDecimal ? base::Decimal::kMaxScale : 0;
    if (column.scale >= 0 && column.scale <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat("output column '", column.name, "' has scale ",
                                                   column.scale, ", which is not in 0..", most));
  }
  return absl::OkStatus();
}

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

absl::Status CheckOutputs(const CountedItem& item, absl::Span<const base::OutputColumn> outputs) {
  if (item.outcome == ItemOutcome::kDeadLettered) return absl::OkStatus();
  if (item.outputs.has_value() != !outputs.empty()) {
    return absl::InvalidArgumentError(outputs.empty()
                                          ? "it has output records, its job has no outputs"
                                          : "its worker knows nothing of its job's outputs");
  }
  if (outputs.empty()) return absl::OkStatus();
  std::vector<std::string> fitted;
  for (const base::OutputRecord& record : *item.outputs) {
    if (record.fields.size() != outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat("an output record has ", record.fields.size(),
                                                     " fields, its job ", outputs.size(),
                                                     " columns"));
    }
    // Those who read the records take them for what the columns say.
    fitted = record.fields;
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(base::FitOutputFields(outputs, &fitted), "an output record"));
  }
  return absl::OkStatus();
}

bool CountsAddUp(const CountedItem& item) {
  if (item.transactions < 0 || item.aggregated < 0 || item.rejected < 0) return false;
  if (item.outcome == ItemOutcome::kDeadLettered) {
    return item.aggregated == 0 && item.rejected == 0 && item.groups.empty() &&
           item.rejections.empty() && !item.outputs.has_value();
  }
  return item.aggregated <= item.transactions &&
         item.rejected == item.transactions - item.aggregated &&
         static_cast<size_t>(item.rejected) == item.rejections.size();
}

}  // namespace

absl::string_view ItemOutcomeName(ItemOutcome outcome) {
  return outcome == ItemOutcome::kAggregated ? "aggregated" : "dead-lettered";
}

absl::Status CheckItem(const CountedItem& item, absl::Span<const GroupShape> groups,
                       absl::Span<const base::OutputColumn> outputs) {
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
  return CheckOutputs(item, outputs);
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
  MUSTER_CHECK(stored.batch == offered.batch && stored.index == offered.index, "stored ",
               stored.batch, "/", stored.index, ", offered ", offered.batch, "/", offered.index);
  if (stored.content != offered.content || stored.transactions != offered.transactions) {
    return Repeat::kConflict;
  }
  // Giving up on an item that is counted already, or again, changes nothing.
  if (offered.outcome == ItemOutcome::kDeadLettered) return Repeat::kDuplicate;
  if (stored.result == offered.result) return Repeat::kDuplicate;
  return stored.outcome == ItemOutcome::kDeadLettered ? Repeat::kReplaces : Repeat::kConflict;
}

namespace {

void JoinKeys(absl::Span<const std::string> keys, std::string* joined) {
  joined->clear();
  for (const std::string& key : keys) {
    const uint32_t size = static_cast<uint32_t>(key.size());
    joined->append(reinterpret_cast<const char*>(&size), sizeof size);
    joined->append(key);
  }
}

std::vector<base::Decimal> Zeros(const GroupShape& shape) {
  std::vector<base::Decimal> zeros;
  zeros.reserve(shape.measures.size());
  for (const MeasureShape& measure : shape.measures) {
    zeros.push_back(*base::Decimal::FromUnits(0, measure.scale));
  }
  return zeros;
}

}  // namespace

absl::Status RowMerger::Add(absl::Span<const PartialRow> rows) {
  for (const PartialRow& row : rows) MUSTER_RETURN_IF_ERROR(AddRow(row));
  return absl::OkStatus();
}

absl::Status RowMerger::AddRow(const PartialRow& partial) {
  MUSTER_DCHECK(partial.keys.size() == shape_->keys.size() &&
                    partial.measures.size() == shape_->measures.size(),
                "group '", shape_->name, "': keys ", partial.keys.size(), ", measures ",
                partial.measures.size());
  JoinKeys(partial.keys, &scratch_);
  auto [it, is_new] = rows_.try_emplace(scratch_);
  if (is_new) it->second = {&partial.keys, Zeros(*shape_)};
  std::vector<base::Decimal>& sums = it->second.measures;
  for (size_t i = 0; i < sums.size(); ++i) {
    std::optional<base::Decimal> value = partial.measures[i].TryRescale(sums[i].scale());
    if (value) value = base::Decimal::TryAdd(sums[i], *value);
    if (!value) {
      return absl::OutOfRangeError(absl::StrCat(RowName(*shape_, partial.keys), ": measure '",
                                                shape_->measures[i].name, "' overflows"));
    }
    sums[i] = *value;
  }
  return absl::OkStatus();
}

std::vector<const RowMerger::Row*> RowMerger::SortedRows() const {
  std::vector<const Row*> sorted;
  sorted.reserve(rows_.size());
  for (const auto& [joined, row] : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(),
            [](const Row* a, const Row* b) { return *a->keys < *b->keys; });
  return sorted;
}

std::string RowName(const GroupShape& shape, absl::Span<const std::string> keys) {
  return absl::StrCat("group '", shape.name, "', row (", absl::StrJoin(keys, ", "), ")");
}

}  // namespace muster::report
