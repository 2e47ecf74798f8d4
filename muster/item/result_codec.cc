// SPDX-License-Identifier: Apache-2.0
#include "muster/item/result_codec.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "muster/base/fingerprint.h"
#include "muster/base/output_proto.h"
#include "muster/base/output_record.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/v1/item_result.pb.h"

namespace muster::item {

namespace {

v1::ItemResult* ResultOf(const WorkItem& item, const Provenance& provenance,
                         google::protobuf::Arena* arena) {
  v1::ItemResult* const result = google::protobuf::Arena::CreateMessage<v1::ItemResult>(arena);
  result->set_batch(item.identity.batch);
  result->set_index(item.index);
  result->set_job(item.identity.job);
  result->set_job_revision(item.identity.job_revision);
  result->set_handler_version(provenance.handler_version);
  result->set_content_hash(item.content.ToBytes());
  result->set_transactions(item.transactions);
  result->set_attempt(static_cast<uint32_t>(provenance.attempt));
  result->set_worker(provenance.worker);
  if (provenance.put != absl::InfinitePast()) {
    *result->mutable_put() = base::ToProto(provenance.put);
  }
  if (item.identity.trace.has_value()) result->set_trace_context(item.identity.trace->ToBytes());
  return result;
}

void EncodeGroup(const handler::GroupPartial& group, v1::GroupPartial* partial) {
  partial->set_group(group.group);
  for (const handler::PartialRow& row : group.rows) {
    v1::PartialRow* encoded = partial->add_rows();
    for (const std::string& key : row.keys) encoded->add_keys(key);
    for (const base::Decimal& measure : row.measures) encoded->add_measures(measure.ToString());
  }
}

// The blob's name contains a fingerprint of the content, so that two attempts that differ never
// share a blob.
absl::Status MoveToBlob(const v1::Aggregated& aggregated, bool with_outputs, v1::ItemResult* result,
                        blob::BlobStore* blobs) {
  const std::string bytes = aggregated.SerializeAsString();
  // Two deliveries of one item may both send this result. The controller deletes the blob of the
  // result that it counts, and must not delete the other one's.
  const std::string name =
      absl::StrCat("batch-", result->batch(), "-item-", result->index(), "-result-",
                   result->attempt(), "-", base::Fingerprint(bytes).ToHex());
  MUSTER_RETURN_IF_ERROR(blobs->Put(name, bytes));
  (with_outputs ? result->mutable_claimed_with_outputs() : result->mutable_claimed_aggregated())
      ->set_blob(name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EncodeAggregated(const WorkItem& item, const Provenance& provenance,
                                             const ItemContribution& contribution,
                                             blob::BlobStore* blobs) {
  google::protobuf::Arena arena;  // a result has hundreds of small parts
  v1::ItemResult* const result = ResultOf(item, provenance, &arena);
  const bool with_outputs = contribution.outputs.has_value();
  v1::Aggregated* const aggregated =
      with_outputs ? result->mutable_aggregated_with_outputs() : result->mutable_aggregated();
  for (const handler::GroupPartial& group : contribution.groups) {
    EncodeGroup(group, aggregated->add_groups());
  }
  for (const handler::Rejection& rejection : contribution.rejections) {
    v1::Rejection* rejected = aggregated->add_rejections();
    rejected->set_line(rejection.line);
    rejected->set_reason(rejection.reason);
  }
  if (with_outputs) {
    for (const base::OutputRecord& output : *contribution.outputs) {
      *aggregated->add_outputs() = base::ToProto(output);
    }
  }
  if (aggregated->ByteSizeLong() > kInlineResultBytes) {
    MUSTER_RETURN_IF_ERROR(MoveToBlob(*aggregated, with_outputs, result, blobs));
  }
  return result->SerializeAsString();
}

std::string EncodeDeadLettered(const WorkItem& item, const Provenance& provenance,
                               absl::string_view cause) {
  google::protobuf::Arena arena;
  v1::ItemResult* const result = ResultOf(item, provenance, &arena);
  result->mutable_dead_lettered()->set_cause(cause.data(), cause.size());
  return result->SerializeAsString();
}

namespace {

// The batch of an encoded result, which is its first field; 0: `body` does not begin like a result.
uint64_t BatchOf(absl::string_view body) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(body.data()),
                                               static_cast<int>(body.size()));
  constexpr uint32_t kBatchTag = v1::ItemResult::kBatchFieldNumber << 3;  // a varint
  uint64_t batch = 0;
  return input.ReadTag() == kBatchTag && input.ReadVarint64(&batch) ? batch : 0;
}

// Collects small results of one batch for one message.
class Pack {
 public:
  explicit Pack(uint64_t batch) : batch_(batch) {}

  bool Fits(uint64_t batch, const queue::NewMessage& message) const {
    return batch == batch_ && parts_.size() < kMaxTogether &&
           bytes_ + message.body.size() <= kTogetherBytes && message.ttl == parts_.front().ttl;
  }

  void Add(queue::NewMessage message) {
    bytes_ += message.body.size();
    parts_.push_back(std::move(message));
  }

  queue::NewMessage Take() {
    queue::NewMessage message = std::move(parts_.front());
    if (parts_.size() == 1) return message;
    v1::ItemResult together;
    together.set_batch(batch_);
    together.add_together(std::move(message.body));
    for (size_t i = 1; i < parts_.size(); ++i) together.add_together(std::move(parts_[i].body));
    message.body = together.SerializeAsString();
    return message;
  }

 private:
  const uint64_t batch_;
  std::vector<queue::NewMessage> parts_;
  size_t bytes_ = 0;
};

}  // namespace

std::vector<queue::NewMessage> PackResults(std::vector<queue::NewMessage> messages) {
  std::vector<queue::NewMessage> packed;
  std::optional<Pack> open;
  const auto close = [&] {
    if (open.has_value()) packed.push_back(open->Take());
    open.reset();
  };
  for (queue::NewMessage& message : messages) {
    const bool plain = message.dedup_id.empty() && message.delay == absl::ZeroDuration();
    const bool small = message.body.size() <= kSmallResultBytes;
    const uint64_t batch = plain && small ? BatchOf(message.body) : 0;
    if (batch == 0) {
      packed.push_back(std::move(message));
      continue;
    }
    if (open.has_value() && !open->Fits(batch, message)) close();
    if (!open.has_value()) open.emplace(batch);
    open->Add(std::move(message));
  }
  close();
  return packed;
}

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
