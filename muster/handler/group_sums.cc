#include "muster/handler/group_sums.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/utf8.h"

namespace muster::handler {
namespace {

using base::Decimal;

bool FitsInt64(const Decimal& value) {
  return value.units() == static_cast<int64_t>(value.units());
}

Decimal Negated(const Decimal& value) { return *Decimal::FromUnits(-value.units(), value.scale()); }

// Adds to a sum what FitMeasure made of a value; false, and no change, when the sum overflows.
bool AddMeasure(const MeasureSchema& measure, const Decimal& value, Decimal* sum) {
  if (!sum->AddInPlace(value)) return false;
  if (measure.type != MeasureSchema::Type::kInt || FitsInt64(*sum)) return true;
  sum->AddInPlace(Negated(value));
  return false;
}

absl::Status Overflows(const MeasureSchema& measure) {
  return absl::OutOfRangeError(absl::StrCat(measure.name, ": overflows"));
}

absl::Status DoesNotFit(const MeasureSchema& measure, const Decimal& value) {
  const bool is_int = measure.type == MeasureSchema::Type::kInt;
  if (value.Trimmed().scale() <= measure.scale) return Overflows(measure);
  return absl::InvalidArgumentError(
      is_int ? absl::StrCat(measure.name, ": ", value.ToString(), " is not a whole number")
             : absl::StrCat(measure.name, ": ", value.ToString(), " needs more than ",
                            measure.scale, " decimals"));
}

// Whether `joined` is what GroupSums::JoinKeys makes of `keys`.
bool IsJoinOf(absl::string_view joined, absl::Span<const absl::string_view> keys) {
  for (const absl::string_view key : keys) {
    uint32_t size;
    if (joined.size() < sizeof(size) + key.size()) return false;
    std::memcpy(&size, joined.data(), sizeof(size));
    if (size != key.size() || joined.substr(sizeof(size), size) != key) return false;
    joined.remove_prefix(sizeof(size) + size);
  }
  return joined.empty();
}

std::vector<std::string> SplitKeys(absl::string_view joined) {
  std::vector<std::string> keys;
  while (!joined.empty()) {
    uint32_t size;
    std::memcpy(&size, joined.data(), sizeof(size));
    keys.emplace_back(joined.substr(sizeof(size), size));
    joined.remove_prefix(sizeof(size) + size);
  }
  return keys;
}

}  // namespace

absl::Status FitMeasure(const MeasureSchema& measure, Decimal* value) {
  if (!value->RescaleInPlace(measure.scale)) return DoesNotFit(measure, *value);
  if (measure.type == MeasureSchema::Type::kInt && !FitsInt64(*value)) return Overflows(measure);
  return absl::OkStatus();
}

absl::Status GroupSums::Add(absl::Span<const absl::string_view> keys,
                            absl::Span<const Decimal> values) {
  MUSTER_RETURN_IF_ERROR(FindRow(keys));
  Decimal* const sums = sums_.data() + *row_ * values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (AddMeasure(schema_->measures[i], values[i], &sums[i])) continue;
    for (size_t j = 0; j < i; ++j) sums[j].AddInPlace(Negated(values[j]));
    return Overflows(schema_->measures[i]);
  }
  ++adds_[*row_];
  return absl::OkStatus();
}

absl::Status GroupSums::FindRow(absl::Span<const absl::string_view> keys) {
  if (row_ && IsJoinOf(row_keys_, keys)) return absl::OkStatus();
  JoinKeys(keys);
  auto found = rows_.find(absl::string_view(joined_));
  if (found == rows_.end()) {
    MUSTER_RETURN_IF_ERROR(CheckKeys(keys));
    found = rows_.emplace(joined_, AddRow()).first;
  }
  row_ = found->second;
  std::swap(row_keys_, joined_);
  return absl::OkStatus();
}

void GroupSums::Subtract(absl::Span<const absl::string_view> keys,
                         absl::Span<const Decimal> values) {
  if (!FindRow(keys).ok()) return;  // cannot be: it is there
  Decimal* const sums = sums_.data() + *row_ * values.size();
  // Cannot overflow: it goes back to what the sums were.
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i].AddInPlace(Negated(values[i]));
  }
  --adds_[*row_];
}

GroupPartial GroupSums::Take() {
  GroupPartial partial{schema_->name, {}};
  const size_t measures = schema_->measures.size();
  for (const auto& [joined, row] : rows_) {
    if (adds_[row] == 0) continue;
    const auto first = sums_.begin() + static_cast<ptrdiff_t>(row * measures);
    partial.rows.push_back({SplitKeys(joined), {first, first + static_cast<ptrdiff_t>(measures)}});
  }
  std::sort(partial.rows.begin(), partial.rows.end(),
            [](const PartialRow& a, const PartialRow& b) { return a.keys < b.keys; });
  rows_.clear();
  adds_.clear();
  sums_.clear();
  row_.reset();
  return partial;
}

void GroupSums::JoinKeys(absl::Span<const absl::string_view> keys) {
  joined_.clear();
  for (absl::string_view key : keys) {
    const auto size = static_cast<uint32_t>(key.size());
    joined_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    joined_.append(key.data(), key.size());
  }
}

// Only a new row is checked: a known one has the same bytes.
absl::Status GroupSums::CheckKeys(absl::Span<const absl::string_view> keys) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::string_view key = keys[i];
    if (key.size() > kMaxKeyBytes) {
      return absl::InvalidArgumentError(absl::StrCat(schema_->keys[i], ": a key of ", key.size(),
                                                     " bytes; at most ", kMaxKeyBytes));
    }
    // SQL stores end a text at a NUL, or refuse it.
    if (!base::IsValidUtf8(key) || key.find('\0') != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(schema_->keys[i], ": the key is not UTF-8 text"));
    }
  }
  return absl::OkStatus();
}

size_t GroupSums::AddRow() {
  for (const MeasureSchema& measure : schema_->measures) {
    sums_.push_back(*Decimal::FromUnits(0, measure.scale));
  }
  adds_.push_back(0);
  return adds_.size() - 1;
}

}  // namespace muster::handler
