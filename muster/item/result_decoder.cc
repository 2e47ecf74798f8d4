// SPDX-License-Identifier: Apache-2.0
#include "muster/item/result_decoder.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "muster/base/output_record.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/v1/item_result.pb.h"

namespace muster::item {
namespace {

using report::CountedItem;

absl::Status Damaged(const v1::ItemResult& result, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("result of item ", result.batch(), "/", result.index(), ": ", why));
}

absl::Status DecodeRow(const v1::ItemResult& result, v1::PartialRow* encoded,
                       report::PartialRow* row) {
  row->keys.reserve(static_cast<size_t>(encoded->keys_size()));
  row->measures.reserve(static_cast<size_t>(encoded->measures_size()));
  for (std::string& key : *encoded->mutable_keys()) row->keys.push_back(std::move(key));
  for (const std::string& measure : encoded->measures()) {
    const std::optional<base::Decimal> value = base::Decimal::TryParse(measure);
    if (!value.has_value()) return Damaged(result, absl::StrCat("'", measure, "' is no number"));
    row->measures.push_back(*value);
  }
  return absl::OkStatus();
}

// Whether a processor has given the blob of this result that name. The controller deletes the blob
// of a result that it has counted: no result may name what belongs to another.
bool IsItsBlob(absl::string_view name, const v1::ItemResult& result) {
  const std::optional<BlobOwner> owner = OwnerOfBlob(name);
  return blob::ValidateBlobName(name).ok() && owner.has_value() && owner->is_result &&
         owner->batch == result.batch() && owner->item == result.index();
}

// Replaces the reference to a claim-checked blob with the blob's content.
absl::Status FetchAggregated(v1::ItemResult* result, blob::BlobStore* blobs) {
  const bool with_outputs = result->has_claimed_with_outputs();
  const std::string name =
      with_outputs ? result->claimed_with_outputs().blob() : result->claimed_aggregated().blob();
  if (!IsItsBlob(name, *result)) {
    return Damaged(*result, absl::StrCat("'", name, "' is not the name of its blob"));
  }
  const absl::StatusOr<std::string> bytes = blobs->Get(name);
  if (absl::IsNotFound(bytes.status())) {
    return Damaged(*result, absl::StrCat("its blob ", name, " is gone"));
  }
  MUSTER_RETURN_IF_ERROR(bytes.status());
  v1::Aggregated* const aggregated =
      with_outputs ? result->mutable_aggregated_with_outputs() : result->mutable_aggregated();
  if (!aggregated->ParseFromString(*bytes)) {
    return Damaged(*result, absl::StrCat("its blob ", name, " cannot be read"));
  }
  return absl::OkStatus();
}

// A record of a rejected transaction, or one out of order, would be a mistake of the processor.
absl::Status DecodeOutputs(const v1::ItemResult* result, v1::Aggregated* aggregated,
                           CountedItem* item) {
  std::vector<base::OutputRecord>& outputs = item->outputs.emplace();
  outputs.reserve(static_cast<size_t>(aggregated->outputs_size()));
  for (v1::OutputRecord& output : *aggregated->mutable_outputs()) {
    if (!outputs.empty() && output.line() < outputs.back().line) {
      return Damaged(*result, "its output records are not in the order of their lines");
    }
    base::OutputRecord& record = outputs.emplace_back();
    record.line = output.line();
    record.fields.reserve(static_cast<size_t>(output.fields_size()));
    for (std::string& field : *output.mutable_fields()) record.fields.push_back(std::move(field));
  }
  return absl::OkStatus();
}

absl::Status DecodeAggregated(v1::ItemResult* result, CountedItem* item) {
  const bool with_outputs = result->has_aggregated_with_outputs();
  v1::Aggregated* const aggregated =
      with_outputs ? result->mutable_aggregated_with_outputs() : result->mutable_aggregated();
  item->outcome = report::ItemOutcome::kAggregated;
  item->rejected = aggregated->rejections_size();
  item->aggregated = item->transactions - item->rejected;
  if (item->aggregated < 0) return Damaged(*result, "it rejects more than it has");
  item->result = base::Fingerprint(aggregated->SerializeAsString());
  for (v1::GroupPartial& group : *aggregated->mutable_groups()) {
    report::GroupPartial& partial = item->groups.emplace_back();
    partial.group = std::move(*group.mutable_group());
    partial.rows.reserve(static_cast<size_t>(group.rows_size()));
    for (v1::PartialRow& row : *group.mutable_rows()) {
      MUSTER_RETURN_IF_ERROR(DecodeRow(*result, &row, &partial.rows.emplace_back()));
    }
  }
  for (v1::Rejection& rejection : *aggregated->mutable_rejections()) {
    item->rejections.push_back({rejection.line(), std::move(*rejection.mutable_reason())});
  }
  if (with_outputs) MUSTER_RETURN_IF_ERROR(DecodeOutputs(result, aggregated, item));
  return absl::OkStatus();
}

// Decodes all fields but the item's outcome.
absl::StatusOr<CountedItem> DecodeHead(v1::ItemResult* result) {
  const std::optional<base::Fingerprint128> content =
      base::Fingerprint128::FromBytes(result->content_hash());
  if (!content.has_value()) return Damaged(*result, "its content hash is malformed");
  CountedItem item;
  item.batch = result->batch();
  item.index = result->index();
  item.transactions = result->transactions();
  item.content = *content;
  item.attempts = result->attempt();
  item.handler_version = std::move(*result->mutable_handler_version());
  item.worker = std::move(*result->mutable_worker());
  return item;
}

absl::Status WithoutOutcome(const v1::ItemResult& result) {
  if (result.GetReflection()->GetUnknownFields(result).empty()) {
    return Damaged(result, "it has no outcome");
  }
  return absl::UnimplementedError(
      absl::StrCat("result of item ", result.batch(), "/", result.index(),
                   ": a newer muster has put it in a form that this one cannot read"));
}

// A time that no clock shows would spoil the metric of the latency for good.
absl::Time PutTime(const google::protobuf::Timestamp& put) {
  const absl::Time time = base::FromProto(put);
  return time >= absl::UnixEpoch() ? time : absl::InfinitePast();
}

absl::StatusOr<DecodedResult> DecodeOne(v1::ItemResult* result, blob::BlobStore* blobs) {
  if (result->outcome_case() == v1::ItemResult::OUTCOME_NOT_SET) return WithoutOutcome(*result);
  DecodedResult decoded;
  MUSTER_ASSIGN_OR_RETURN(decoded.item, DecodeHead(result));
  if (result->has_put()) decoded.put = PutTime(result->put());
  decoded.trace = base::TraceContext::FromBytes(result->trace_context());
  if (result->has_dead_lettered()) {
    decoded.item.outcome = report::ItemOutcome::kDeadLettered;
    decoded.item.cause = std::move(*result->mutable_dead_lettered()->mutable_cause());
    return decoded;
  }
  if (result->has_claimed_aggregated() || result->has_claimed_with_outputs()) {
    decoded.blob = result->has_claimed_aggregated() ? result->claimed_aggregated().blob()
                                                    : result->claimed_with_outputs().blob();
    MUSTER_RETURN_IF_ERROR(FetchAggregated(result, blobs));
  }
  MUSTER_RETURN_IF_ERROR(DecodeAggregated(result, &decoded.item));
  return decoded;
}

// nullptr: these bytes are no result. The arena is for the hundreds of small parts of a result.
v1::ItemResult* Parse(absl::string_view body, google::protobuf::Arena* arena) {
  auto* const result = google::protobuf::Arena::CreateMessage<v1::ItemResult>(arena);
  const bool fits = body.size() <= std::numeric_limits<int>::max();
  const bool parsed = fits && result->ParseFromArray(body.data(), static_cast<int>(body.size()));
  return parsed && result->batch() != 0 ? result : nullptr;
}

absl::StatusOr<DecodedResult> DecodePart(uint64_t batch, absl::string_view body,
                                         blob::BlobStore* blobs) {
  google::protobuf::Arena arena;
  v1::ItemResult* const result = Parse(body, &arena);
  if (result == nullptr || result->batch() != batch) {
    return absl::DataLossError(absl::StrCat("a part of a message is no result of batch ", batch));
  }
  return DecodeOne(result, blobs);
}

bool IsItsOwn(const absl::Status& error) {
  return absl::IsDataLoss(error) || absl::IsUnimplemented(error);
}

}  // namespace

absl::StatusOr<DecodedResults> DecodeResults(absl::string_view body, blob::BlobStore* blobs) {
  google::protobuf::Arena arena;
  v1::ItemResult* const whole = Parse(body, &arena);
  DecodedResults results;
  if (whole == nullptr) {
    results.push_back(absl::DataLossError("the message is no result of a work item"));
  } else if (whole->together().empty()) {
    results.push_back(DecodeOne(whole, blobs));
  } else if (static_cast<size_t>(whole->together_size()) > kMaxTogether) {
    results.push_back(absl::DataLossError(absl::StrCat("the message has ", whole->together_size(),
                                                       " results; at most ", kMaxTogether)));
  } else {
    for (const std::string& part : whole->together()) {
      results.push_back(DecodePart(whole->batch(), part, blobs));
    }
  }
  for (const absl::StatusOr<DecodedResult>& result : results) {
    if (!result.ok() && !IsItsOwn(result.status())) return result.status();
  }
  return results;
}

absl::Status FirstError(const absl::StatusOr<DecodedResults>& results) {
  MUSTER_RETURN_IF_ERROR(results.status());
  for (const absl::StatusOr<DecodedResult>& result : *results) {
    MUSTER_RETURN_IF_ERROR(result.status());
  }
  return absl::OkStatus();
}

}  // namespace muster::item
