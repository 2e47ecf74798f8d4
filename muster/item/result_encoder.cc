// SPDX-License-Identifier: Apache-2.0
#include "muster/item/result_encoder.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "muster/base/fingerprint.h"
#include "muster/base/output_proto.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
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

}  // namespace muster::item
