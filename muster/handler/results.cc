// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/results.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/base/text.h"

namespace muster::handler {

namespace {

using base::Decimal;

Decimal Negated(const Decimal& value) { return *Decimal::FromUnits(-value.units(), value.scale()); }

// Adds to a sum what FitMeasure made of a value; false, and no change, when the sum overflows.
bool AddMeasure(const MeasureSchema& measure, const Decimal& value, Decimal* sum) {
  if (!sum->AddInPlace(value)) return false;
  if (measure.type != MeasureSchema::Type::kInt || sum->FitsInt64()) return true;
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
  if (measure.type == MeasureSchema::Type::kInt && !value->FitsInt64()) return Overflows(measure);
  return absl::OkStatus();
}

absl::Status GroupSums::Add(absl::Span<const absl::string_view> keys,
                            absl::Span<const Decimal> values) {
  MUSTER_DCHECK(keys.size() == schema_->keys.size() && values.size() == schema_->measures.size(),
                "group ", schema_->name, ", keys ", keys.size(), ", measures ", values.size());
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
  const absl::Status found = FindRow(keys);
  MUSTER_CHECK(found.ok() && adds_[*row_] > 0, "group ", schema_->name,
               " has no such addition: ", found.ToString());
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
    if (!base::IsValidUtf8(key)) {
      return absl::InvalidArgumentError(
          absl::StrCat(schema_->keys[i], ": the key is not UTF-8 text"));
    }
    // SQL stores end a text there, or refuse it.
    if (key.find('\0') != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(schema_->keys[i], ": a NUL is not allowed in a key"));
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

namespace {

constexpr uint8_t kOneVerdict = 1;
constexpr uint8_t kSeveralVerdicts = 2;

absl::Status CheckShape(const JobSchema& schema, Group group, size_t keys, size_t measures) {
  if (group.index < 0 || static_cast<size_t>(group.index) >= schema.groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the job has no group number ", group.index));
  }
  const GroupSchema& expected = schema.groups[static_cast<size_t>(group.index)];
  if (keys == expected.keys.size() && measures == expected.measures.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("group ", expected.name, " has ", expected.keys.size(), " keys and ",
                   expected.measures.size(), " measures, not ", keys, " and ", measures));
}

std::vector<absl::string_view> ViewsOf(absl::Span<const std::string> keys) {
  return {keys.begin(), keys.end()};
}

absl::Status CheckRoom(size_t output_bytes) {
  if (output_bytes <= base::kMaxItemOutputBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("outputs: the item's records have more than ",
                                                 base::kMaxItemOutputBytes,
                                                 " bytes; make items smaller"));
}

}  // namespace

Results::Results(const JobSchema* schema, int transactions)
    : schema_(schema), verdicts_(static_cast<size_t>(transactions)) {
  groups_.reserve(schema->groups.size());
  for (const GroupSchema& group : schema->groups) groups_.emplace_back(&group);
}

void Results::Count(const Transaction& transaction,
                    std::initializer_list<Contribution> contributions) {
  Count(transaction, contributions, {});
}

void Results::Count(const Transaction& transaction,
                    std::initializer_list<Contribution> contributions,
                    std::vector<std::vector<std::string>> records) {
  if (!TakeVerdict(transaction)) return;
  for (const Contribution& contribution : contributions) {
    if (RefuseMalformed(contribution)) return;
  }
  std::vector<base::OutputRecord> outputs;
  size_t bytes = 0;
  absl::Status fits = FitOutputs(transaction.line(), std::move(records), &outputs, &bytes);
  if (fits.ok()) fits = AddAll(contributions);
  if (!fits.ok()) return AppendRejection(transaction.line(), fits.message());
  Append(std::move(outputs), bytes);
  ++counted_;
}

void Results::Reject(const Transaction& transaction, absl::string_view reason) {
  if (TakeVerdict(transaction)) AppendRejection(transaction.line(), reason);
}

void Results::Absorb(const Transaction& transaction, Results& alone) {
  if (!TakeVerdict(transaction)) return;
  if (!alone.rejections_.empty()) {
    AppendRejection(transaction.line(), alone.rejections_.front().reason);
    return;
  }
  std::vector<GroupPartial> partials;
  for (GroupSums& group : alone.groups_) partials.push_back(group.Take());
  absl::Status added = CheckRoom(output_bytes_ + alone.output_bytes_);
  if (added.ok()) added = AddPartials(partials);
  if (!added.ok()) return AppendRejection(transaction.line(), added.message());
  Append(std::move(alone.outputs_), alone.output_bytes_);
  ++counted_;
}

absl::Status Results::AddRow(Group group, absl::Span<const std::string> keys,
                             absl::Span<const base::Decimal> measures) {
  MUSTER_RETURN_IF_ERROR(CheckShape(*schema_, group, keys.size(), measures.size()));
  values_.clear();
  MUSTER_RETURN_IF_ERROR(Fit(group, measures));
  return groups_[static_cast<size_t>(group.index)].Add(ViewsOf(keys), values_);
}

absl::Status Results::AddOutput(const Transaction& transaction, std::vector<std::string> fields) {
  std::vector<std::vector<std::string>> records;
  records.push_back(std::move(fields));
  std::vector<base::OutputRecord> outputs;
  size_t bytes = 0;
  MUSTER_RETURN_IF_ERROR(FitOutputs(transaction.line(), std::move(records), &outputs, &bytes));
  Append(std::move(outputs), bytes);
  return absl::OkStatus();
}

void Results::CountAllExceptRejected() {
  for (uint8_t& verdict : verdicts_) {
    if (verdict != 0) continue;
    verdict = kOneVerdict;
    ++counted_;
  }
}

absl::Status Results::Verdict() const {
  if (!mistake_.ok()) return absl::InternalError(mistake_.message());
  for (size_t i = 0; i < verdicts_.size(); ++i) {
    if (verdicts_[i] == kOneVerdict) continue;
    return absl::InternalError(absl::StrCat("the handler gave transaction ", i,
                                            verdicts_[i] == 0 ? " no verdict" : " two verdicts"));
  }
  return absl::OkStatus();
}

std::vector<GroupPartial> Results::TakePartials() {
  std::vector<GroupPartial> partials;
  for (GroupSums& group : groups_) {
    GroupPartial partial = group.Take();
    if (!partial.rows.empty()) partials.push_back(std::move(partial));
  }
  return partials;
}

std::vector<base::OutputRecord> Results::TakeOutputs() {
  std::stable_sort(
      outputs_.begin(), outputs_.end(),
      [](const base::OutputRecord& a, const base::OutputRecord& b) { return a.line < b.line; });
  output_bytes_ = 0;
  return std::exchange(outputs_, {});
}

absl::Status Results::FitOutputs(int64_t line, std::vector<std::vector<std::string>> records,
                                 std::vector<base::OutputRecord>* outputs, size_t* bytes) const {
  if (!records.empty() && schema_->outputs.empty()) {
    return absl::InvalidArgumentError("outputs: the job has none");
  }
  for (std::vector<std::string>& fields : records) {
    MUSTER_RETURN_IF_ERROR(base::FitOutputFields(schema_->outputs, &fields));
    *bytes += base::OutputBytes(fields);
    MUSTER_RETURN_IF_ERROR(CheckRoom(output_bytes_ + *bytes));
    outputs->push_back({line, std::move(fields)});
  }
  return absl::OkStatus();
}

void Results::Append(std::vector<base::OutputRecord> outputs, size_t bytes) {
  output_bytes_ += bytes;
  std::move(outputs.begin(), outputs.end(), std::back_inserter(outputs_));
}

// False when the transaction has a verdict already; Verdict() reports it.
bool Results::TakeVerdict(const Transaction& transaction) {
  const auto ordinal = static_cast<size_t>(transaction.ordinal());
  if (ordinal >= verdicts_.size()) {
    mistake_.Update(absl::InternalError(
        absl::StrCat("transaction ", transaction.ordinal(), " is not of this work item")));
    return false;
  }
  if (verdicts_[ordinal] != 0) {
    verdicts_[ordinal] = kSeveralVerdicts;
    return false;
  }
  verdicts_[ordinal] = kOneVerdict;
  return true;
}

// True when the contribution is malformed; Verdict() reports it from now on.
bool Results::RefuseMalformed(const Contribution& contribution) {
  absl::Status status = CheckShape(*schema_, contribution.group, contribution.keys.size(),
                                   contribution.measures.size());
  mistake_.Update(status);
  return !status.ok();
}

// Appends `measures` to values_, as the group keeps them.
absl::Status Results::Fit(Group group, absl::Span<const base::Decimal> measures) {
  const GroupSchema& schema = schema_->groups[static_cast<size_t>(group.index)];
  for (size_t i = 0; i < measures.size(); ++i) {
    values_.push_back(measures[i]);
    MUSTER_RETURN_IF_ERROR(FitMeasure(schema.measures[i], &values_.back()));
  }
  return absl::OkStatus();
}

// All contributions or none.
absl::Status Results::AddAll(absl::Span<const Contribution> contributions) {
  values_.clear();
  for (const Contribution& c : contributions) {
    MUSTER_RETURN_IF_ERROR(Fit(c.group, c.measures));
  }
  size_t first_value = 0;
  for (size_t i = 0; i < contributions.size(); ++i) {
    const Contribution& c = contributions[i];
    const auto values = absl::MakeConstSpan(values_).subspan(first_value, c.measures.size());
    const absl::Status added = groups_[static_cast<size_t>(c.group.index)].Add(c.keys, values);
    if (!added.ok()) {
      TakeBack(contributions.subspan(0, i));
      return added;
    }
    first_value += c.measures.size();
  }
  return absl::OkStatus();
}

void Results::TakeBack(absl::Span<const Contribution> contributions) {
  size_t first_value = 0;
  for (const Contribution& c : contributions) {
    const auto values = absl::MakeConstSpan(values_).subspan(first_value, c.measures.size());
    groups_[static_cast<size_t>(c.group.index)].Subtract(c.keys, values);
    first_value += c.measures.size();
  }
}

// `partials` by group, as groups_. All rows or none.
absl::Status Results::AddPartials(absl::Span<const GroupPartial> partials) {
  MUSTER_CHECK(partials.size() == groups_.size(), "partials ", partials.size(), ", groups ",
               groups_.size());
  size_t count = 0;
  for (size_t i = 0; i < partials.size(); ++i) {
    for (const PartialRow& row : partials[i].rows) {
      const absl::Status added = groups_[i].Add(ViewsOf(row.keys), row.measures);
      if (!added.ok()) {
        TakeBackPartials(partials, count);
        return added;
      }
      ++count;
    }
  }
  return absl::OkStatus();
}

void Results::TakeBackPartials(absl::Span<const GroupPartial> partials, size_t count) {
  for (size_t i = 0; i < partials.size(); ++i) {
    for (const PartialRow& row : partials[i].rows) {
      if (count-- == 0) return;
      groups_[i].Subtract(ViewsOf(row.keys), row.measures);
    }
  }
}

void Results::AppendRejection(int64_t line, absl::string_view reason) {
  rejections_.push_back({line, base::Printable(reason, kMaxReasonBytes)});
}

}  // namespace muster::handler
