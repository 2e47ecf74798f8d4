#include "muster/handler/results.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/printable.h"
#include "muster/base/status_macros.h"

namespace muster::handler {
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

}  // namespace

Results::Results(const JobSchema* schema, int transactions)
    : schema_(schema), verdicts_(static_cast<size_t>(transactions)) {
  groups_.reserve(schema->groups.size());
  for (const GroupSchema& group : schema->groups) groups_.emplace_back(&group);
}

void Results::Count(const Transaction& transaction,
                    std::initializer_list<Contribution> contributions) {
  if (!TakeVerdict(transaction)) return;
  for (const Contribution& contribution : contributions) {
    if (RefuseMalformed(contribution)) return;
  }
  const absl::Status added = AddAll(contributions);
  if (added.ok()) {
    ++counted_;
  } else {
    AppendRejection(transaction.line(), added.message());
  }
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
  const absl::Status added = AddPartials(partials);
  if (added.ok()) {
    ++counted_;
  } else {
    AppendRejection(transaction.line(), added.message());
  }
}

absl::Status Results::AddRow(Group group, absl::Span<const std::string> keys,
                             absl::Span<const base::Decimal> measures) {
  MUSTER_RETURN_IF_ERROR(CheckShape(*schema_, group, keys.size(), measures.size()));
  values_.clear();
  MUSTER_RETURN_IF_ERROR(Fit(group, measures));
  return groups_[static_cast<size_t>(group.index)].Add(ViewsOf(keys), values_);
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

// False when the handler spoke out of turn, which Verdict() tells.
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

// True when the contribution cannot be meant, which Verdict() tells from now on.
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
