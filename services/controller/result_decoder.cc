#include "services/controller/result_decoder.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "muster/base/status_macros.h"
#include "muster/v1/item_result.pb.h"
#include "muster/wire/work_item_codec.h"

namespace muster::controller {
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

// Puts what was claim-checked back in its place.
absl::Status FetchAggregated(v1::ItemResult* result, blob::BlobStore* blobs) {
  const std::string name = result->claimed_aggregated().blob();
  const absl::StatusOr<std::string> bytes = blobs->Get(name);
  if (absl::IsNotFound(bytes.status())) {
    return Damaged(*result, absl::StrCat("its blob ", name, " is gone"));
  }
  MUSTER_RETURN_IF_ERROR(bytes.status());
  if (!result->mutable_aggregated()->ParseFromString(*bytes)) {
    return Damaged(*result, absl::StrCat("its blob ", name, " cannot be read"));
  }
  return absl::OkStatus();
}

absl::Status DecodeAggregated(v1::ItemResult* result, CountedItem* item) {
  v1::Aggregated* const aggregated = result->mutable_aggregated();
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
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedResult> DecodeResult(absl::string_view body, blob::BlobStore* blobs) {
  google::protobuf::Arena arena;  // a result is made of hundreds of small parts
  v1::ItemResult& result = *google::protobuf::Arena::CreateMessage<v1::ItemResult>(&arena);
  if (body.size() > std::numeric_limits<int>::max() ||
      !result.ParseFromArray(body.data(), static_cast<int>(body.size())) || result.batch() == 0) {
    return absl::DataLossError("the message is no result of a work item");
  }
  const std::optional<base::Fingerprint128> content =
      base::Fingerprint128::FromBytes(result.content_hash());
  if (!content.has_value()) return Damaged(result, "its content hash is malformed");
  DecodedResult decoded;
  CountedItem& item = decoded.item;
  item.batch = result.batch();
  item.index = result.index();
  item.transactions = result.transactions();
  item.content = *content;
  item.attempts = result.attempt();
  item.handler_version = std::move(*result.mutable_handler_version());
  item.worker = std::move(*result.mutable_worker());
  if (result.has_claimed_aggregated()) {
    decoded.blob = result.claimed_aggregated().blob();
    MUSTER_RETURN_IF_ERROR(FetchAggregated(&result, blobs));
  }
  switch (result.outcome_case()) {
    case v1::ItemResult::kAggregated:
      MUSTER_RETURN_IF_ERROR(DecodeAggregated(&result, &item));
      return decoded;
    case v1::ItemResult::kDeadLettered:
      item.outcome = report::ItemOutcome::kDeadLettered;
      item.cause = std::move(*result.mutable_dead_lettered()->mutable_cause());
      return decoded;
    case v1::ItemResult::kClaimedAggregated:  // fetched above
    case v1::ItemResult::OUTCOME_NOT_SET:
      break;
  }
  if (!result.GetReflection()->GetUnknownFields(result).empty()) {
    return absl::UnimplementedError(
        absl::StrCat("result of item ", result.batch(), "/", result.index(),
                     ": a newer muster has put it in a form that this one cannot read"));
  }
  return Damaged(result, "it has no outcome");
}

}  // namespace muster::controller
