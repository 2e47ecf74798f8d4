#include "muster/report/row_merger.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"

namespace muster::report {
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
