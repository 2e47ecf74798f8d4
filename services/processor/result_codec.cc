#include "services/processor/result_codec.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status_macros.h"
#include "muster/v1/item_result.pb.h"

namespace muster::processor {
namespace {

v1::ItemResult* ResultOf(const wire::WorkItem& item, const Provenance& provenance,
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

// The name tells the content, so that two attempts that differ never share a blob.
absl::Status MoveToBlob(v1::ItemResult* result, blob::BlobStore* blobs) {
  const std::string bytes = result->aggregated().SerializeAsString();
  // Two deliveries of one item may both send this result; who counts the one removes its blob, and
  // must not take the other's.
  const std::string name =
      absl::StrCat("batch-", result->batch(), "-item-", result->index(), "-result-",
                   result->attempt(), "-", base::Fingerprint(bytes).ToHex());
  MUSTER_RETURN_IF_ERROR(blobs->Put(name, bytes));
  result->mutable_claimed_aggregated()->set_blob(name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EncodeAggregated(const wire::WorkItem& item,
                                             const Provenance& provenance,
                                             const std::vector<handler::GroupPartial>& groups,
                                             const std::vector<handler::Rejection>& rejections,
                                             blob::BlobStore* blobs) {
  google::protobuf::Arena arena;  // a result is made of hundreds of small parts
  v1::ItemResult* const result = ResultOf(item, provenance, &arena);
  v1::Aggregated* const aggregated = result->mutable_aggregated();
  for (const handler::GroupPartial& group : groups) EncodeGroup(group, aggregated->add_groups());
  for (const handler::Rejection& rejection : rejections) {
    v1::Rejection* rejected = aggregated->add_rejections();
    rejected->set_line(rejection.line);
    rejected->set_reason(rejection.reason);
  }
  if (aggregated->ByteSizeLong() > kInlineResultBytes) {
    MUSTER_RETURN_IF_ERROR(MoveToBlob(result, blobs));
  }
  return result->SerializeAsString();
}

std::string EncodeDeadLettered(const wire::WorkItem& item, const Provenance& provenance,
                               absl::string_view cause) {
  google::protobuf::Arena arena;
  v1::ItemResult* const result = ResultOf(item, provenance, &arena);
  result->mutable_dead_lettered()->set_cause(cause.data(), cause.size());
  return result->SerializeAsString();
}

}  // namespace muster::processor
