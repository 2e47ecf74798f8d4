// SPDX-License-Identifier: Apache-2.0

// The line that a handler's program writes about an item of three transactions. The first byte says
// which of them the parser refused before the program received the item.
#include <set>
#include <string>

#include "muster/base/text.h"
#include "muster/handler/command/protocol.h"
#include "muster/handler/sample_item.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using handler::JobSchema;
using handler::MeasureSchema;
using handler::Outcome;
using handler::Results;
using handler::SampleItem;

const JobSchema& Schema() {
  static const auto* const schema = new JobSchema{
      "bills",
      "r1",
      {"quantity"},
      {{"total",
        {"day"},
        {{"units", MeasureSchema::Type::kInt, 0}, {"revenue", MeasureSchema::Type::kDecimal, 2}}},
       {"by_shop", {"day", "shop"}, {{"units", MeasureSchema::Type::kInt, 0}}}},
      {{"note", base::OutputColumn::Type::kText, 0},
       {"tax", base::OutputColumn::Type::kDecimal, 2}}};
  return *schema;
}

const SampleItem& Item() {
  static const auto* const item = [] {
    handler::ItemContext context;
    context.batch = 1;
    context.index = 7;
    return new SampleItem({{"1"}, {"2"}, {"3"}}, context);
  }();
  return *item;
}

void CheckRows(Results& results) {
  for (const handler::GroupPartial& partial : results.TakePartials()) {
    const auto group = Schema().FindGroup(partial.group);
    Must(group.ok(), "rows are those of a group of the job");
    const handler::GroupSchema& schema = Schema().groups[static_cast<size_t>(group->index)];
    for (const handler::PartialRow& row : partial.rows) {
      Must(row.keys.size() == schema.keys.size(), "a row has the group's keys");
      Must(row.measures.size() == schema.measures.size(), "a row has the group's measures");
      for (const std::string& key : row.keys) {
        Must(base::IsValidUtf8(key) && key.size() <= handler::kMaxKeyBytes, "a key is short text");
      }
      for (size_t i = 0; i < row.measures.size(); ++i) {
        Must(row.measures[i].scale() == schema.measures[i].scale, "a measure has its decimals");
      }
    }
  }
}

void CheckOutputs(Results& results, const std::set<int64_t>& rejected) {
  int64_t last = 0;
  for (base::OutputRecord& record : results.TakeOutputs()) {
    Must(record.line >= last && record.line >= 2 && record.line <= 4,
         "records are of lines of the item, in their order");
    Must(!rejected.contains(record.line), "a rejected transaction gives no record");
    last = record.line;
    std::vector<std::string> fields = record.fields;
    Must(base::FitOutputFields(Schema().outputs, &fields).ok() && fields == record.fields,
         "a record fits its columns, in their form");
  }
}

void CheckResults(Results& results) {
  Must(results.Verdict().ok(), "each transaction has exactly one verdict");
  const size_t verdicts = static_cast<size_t>(results.counted()) + results.rejections().size();
  Must(verdicts == static_cast<size_t>(Item().size()), "the verdicts are as many as transactions");
  std::set<int64_t> lines;
  for (const handler::Rejection& rejection : results.rejections()) {
    Must(lines.insert(rejection.line).second, "no transaction is rejected twice");
    Must(rejection.line >= 2 && rejection.line <= 4, "a rejection is of a line of the item");
    Must(rejection.reason.size() <= handler::kMaxReasonBytes, "a reason is short");
  }
  CheckRows(results);
  CheckOutputs(results, lines);
}

void CheckPostponed(const Outcome& outcome) {
  Must(outcome.kind == Outcome::Kind::kRetry || outcome.kind == Outcome::Kind::kDefer ||
           outcome.kind == Outcome::Kind::kDead,
       "an answer is ok, retry, defer or dead");
  Must(outcome.delay >= absl::ZeroDuration() && outcome.delay <= absl::Hours(7 * 24),
       "a delay is within the life of a message");
  Must(base::IsValidUtf8(outcome.why), "a reason is text");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size == 0) return 0;
  Results results(&Schema(), Item().size());
  if (data[0] % 4 < 3) results.Reject(Item()[data[0] % 4], "not sent");
  const absl::StatusOr<Outcome> outcome = muster::handler::command::DecodeAnswer(
      Text(data + 1, size - 1), Schema(), Item().get(), results);
  if (!outcome.ok()) {
    Must(absl::IsInvalidArgument(outcome.status()) || absl::IsOutOfRange(outcome.status()),
         "a wrong answer is InvalidArgument, and one whose values do not fit is OutOfRange");
    Must(!outcome.status().message().empty(), "the error says what is wrong");
  } else if (outcome->kind == Outcome::Kind::kOk) {
    CheckResults(results);
  } else {
    CheckPostponed(*outcome);
  }
  return 0;
}
