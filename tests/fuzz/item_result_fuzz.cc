// SPDX-License-Identifier: Apache-2.0

// The message of an item's result: the input as a message, and as the rows and rejections of a
// result that is encoded, with records or without.
#include <fuzzer/FuzzedDataProvider.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/output_record.h"
#include "muster/base/text.h"
#include "muster/item/result_codec.h"
#include "tests/fuzz/one_blob.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using item::DecodedResult;
using report::CountedItem;
using report::ItemOutcome;

// Decodes a message with one result.
absl::StatusOr<DecodedResult> DecodeResult(absl::string_view body, blob::BlobStore* blobs) {
  auto results = item::DecodeResults(body, blobs);
  Must(results.ok() && results->size() == 1, "one result is read as one");
  return std::move(results->front());
}

void CheckResult(const absl::StatusOr<DecodedResult>& result) {
  if (!result.ok()) {
    Must(absl::IsDataLoss(result.status()) || absl::IsUnimplemented(result.status()),
         "a result that cannot be counted is damaged, or a newer muster's");
    return;
  }
  const CountedItem& item = result->item;
  Must(item.batch != 0, "a result is that of a batch");
  if (item.outcome == ItemOutcome::kDeadLettered) {
    Must(item.groups.empty() && item.rejections.empty(), "nothing of a dead item counts");
    return;
  }
  Must(item.aggregated >= 0 && item.aggregated + item.rejected == item.transactions,
       "aggregated and rejected ones are all transactions");
  Must(item.rejections.size() == static_cast<size_t>(item.rejected), "rejections are counted");
}

// The encoder receives only valid UTF-8 in keys and reasons.
std::string TakeText(FuzzedDataProvider* input) {
  const std::string text = input->ConsumeRandomLengthString(40);
  return base::IsValidUtf8(text) ? text : "not UTF-8";
}

base::Decimal TakeMeasure(FuzzedDataProvider* input) {
  const base::Int128 high = input->ConsumeIntegral<int64_t>();
  const base::Int128 units = high * (int64_t{1} << 40) + input->ConsumeIntegral<int32_t>();
  return base::Decimal::FromUnits(units, input->ConsumeIntegralInRange(0, 18)).value();
}

std::vector<handler::GroupPartial> TakeGroups(FuzzedDataProvider* input) {
  std::vector<handler::GroupPartial> groups(input->ConsumeIntegralInRange<size_t>(0, 2));
  for (handler::GroupPartial& group : groups) {
    group.group = TakeText(input);
    group.rows.resize(input->ConsumeIntegralInRange<size_t>(0, 3));
    for (handler::PartialRow& row : group.rows) {
      row.keys = {TakeText(input), TakeText(input)};
      row.measures = {TakeMeasure(input)};
    }
  }
  return groups;
}

void CheckRows(const std::vector<report::GroupPartial>& got,
               const std::vector<handler::GroupPartial>& groups) {
  Must(got.size() == groups.size(), "the groups are as many");
  for (size_t i = 0; i < groups.size(); ++i) {
    Must(got[i].group == groups[i].group, "the groups are the same");
    Must(got[i].rows.size() == groups[i].rows.size(), "the rows are as many");
    for (size_t j = 0; j < groups[i].rows.size(); ++j) {
      const handler::PartialRow& row = groups[i].rows[j];
      Must(got[i].rows[j].keys == row.keys, "the keys are the same");
      Must(got[i].rows[j].measures == row.measures, "the measures are the same");
    }
  }
}

void CheckAggregated(FuzzedDataProvider* input, OneBlob* blobs) {
  item::WorkItem item;
  item.identity.batch = 3;
  item.index = input->ConsumeIntegral<uint32_t>();
  item.transactions = input->ConsumeIntegralInRange<uint32_t>(1, 4);
  const std::vector<handler::GroupPartial> groups = TakeGroups(input);
  std::vector<handler::Rejection> rejections(input->ConsumeIntegralInRange<size_t>(0, 5));
  for (handler::Rejection& r : rejections) r = {input->ConsumeIntegral<int64_t>(), TakeText(input)};
  std::optional<std::vector<base::OutputRecord>> outputs;
  if (input->ConsumeBool()) {
    outputs.emplace(input->ConsumeIntegralInRange<size_t>(0, 3));
    for (base::OutputRecord& r : *outputs) {
      r = {input->ConsumeIntegral<int64_t>(), {TakeText(input), TakeText(input)}};
    }
  }
  const std::string body =
      *item::EncodeAggregated(item, {"v1", "w", 2}, {groups, rejections, outputs}, blobs);
  const absl::StatusOr<DecodedResult> result = DecodeResult(body, blobs);
  const bool in_order = !outputs.has_value() || std::is_sorted(outputs->begin(), outputs->end(),
                                                               [](const auto& a, const auto& b) {
                                                                 return a.line < b.line;
                                                               });
  Must(result.ok() == (in_order && rejections.size() <= item.transactions),
       "a result is refused if it rejects more than it has or its records are out of order, and "
       "only then");
  if (!result.ok()) return;
  CheckRows(result->item.groups, groups);
  Must(result->item.outputs == outputs, "the output records are the same");
  for (size_t i = 0; i < rejections.size(); ++i) {
    Must(result->item.rejections[i].line == rejections[i].line &&
             result->item.rejections[i].reason == rejections[i].reason,
         "the rejections are the same");
  }
}

void CheckDeadLettered(const std::string& cause, OneBlob* blobs) {
  item::WorkItem item;
  item.identity.batch = 3;
  const std::string body = item::EncodeDeadLettered(item, {"v1", "w", 2}, cause);
  const absl::StatusOr<DecodedResult> result = DecodeResult(body, blobs);
  Must(result.ok() && result->item.outcome == ItemOutcome::kDeadLettered &&
           result->item.cause == cause && result->item.attempts == 2,
       "what was given up arrives with its cause");
}

void CheckMessage(absl::string_view body, blob::BlobStore* blobs) {
  const auto results = item::DecodeResults(body, blobs);
  Must(results.ok() && !results->empty(), "a message has one result or more, or an error for one");
  uint64_t batch = 0;
  for (const absl::StatusOr<DecodedResult>& result : *results) {
    CheckResult(result);
    if (!result.ok()) continue;
    Must(batch == 0 || result->item.batch == batch, "the results of a message are of one batch");
    batch = result->item.batch;
  }
}

// Packed results decode to the same values as separate ones.
void CheckTogether(FuzzedDataProvider* input, OneBlob* blobs) {
  std::vector<queue::NewMessage> alone(input->ConsumeIntegralInRange<size_t>(0, 5));
  std::vector<std::string> causes;
  for (queue::NewMessage& message : alone) {
    item::WorkItem item;
    item.identity.batch = input->ConsumeIntegralInRange<uint64_t>(1, 2);
    causes.push_back(TakeText(input));
    message.body = item::EncodeDeadLettered(item, {"v1", "w", 2}, causes.back());
  }
  std::vector<std::string> read;
  for (const queue::NewMessage& message : item::PackResults(alone)) {
    const auto results = item::DecodeResults(message.body, blobs);
    Must(results.ok(), "what was packed is read");
    for (const absl::StatusOr<DecodedResult>& result : *results) {
      Must(result.ok(), "what was packed is sound");
      read.push_back(result->item.cause);
    }
  }
  Must(read == causes, "results that travel together are those that were packed");
}

}  // namespace
}  // namespace muster::fuzz

// protobuf reports each text that is no UTF-8 on stderr, which takes more time than to read it.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  OneBlob blobs;
  (void)blobs.Put("b", Text(data, size));
  CheckMessage(Text(data, size), &blobs);
  FuzzedDataProvider input(data, size);
  CheckAggregated(&input, &blobs);
  CheckDeadLettered(TakeText(&input), &blobs);
  CheckTogether(&input, &blobs);
  return 0;
}
