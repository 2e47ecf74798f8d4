#include "muster/ledger_rocksdb/batch_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/rocks/checked_value.h"
#include "muster/v1/batch.pb.h"

namespace muster::ledger_rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

void ToProto(absl::Time time, google::protobuf::Timestamp* proto) {
  const int64_t nanos = absl::ToUnixNanos(time);
  proto->set_seconds(nanos / 1'000'000'000);
  proto->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

v1::BatchState ToProto(BatchState state) {
  switch (state) {
    case BatchState::kOpen:
      return v1::BATCH_STATE_OPEN;
    case BatchState::kSealed:
      return v1::BATCH_STATE_SEALED;
    case BatchState::kComplete:
      return v1::BATCH_STATE_COMPLETE;
    case BatchState::kCancelled:
      return v1::BATCH_STATE_CANCELLED;
  }
  return v1::BATCH_STATE_UNSPECIFIED;
}

absl::StatusOr<BatchState> FromProto(v1::BatchState state, absl::string_view what) {
  switch (state) {
    case v1::BATCH_STATE_OPEN:
      return BatchState::kOpen;
    case v1::BATCH_STATE_SEALED:
      return BatchState::kSealed;
    case v1::BATCH_STATE_COMPLETE:
      return BatchState::kComplete;
    case v1::BATCH_STATE_CANCELLED:
      return BatchState::kCancelled;
    default:
      return absl::DataLossError(absl::StrCat(what, ": unknown state ", state));
  }
}

std::string HashBytes(const base::Fingerprint128& hash) {
  std::string bytes;
  rocks::AppendKey(hash.high, &bytes);
  rocks::AppendKey(hash.low, &bytes);
  return bytes;
}

absl::StatusOr<base::Fingerprint128> HashFromBytes(absl::string_view bytes,
                                                   absl::string_view what) {
  if (bytes.size() != 16) return absl::DataLossError(absl::StrCat(what, ": malformed hash"));
  return base::Fingerprint128{rocks::KeyNumber(bytes), rocks::KeyNumber(bytes.substr(8))};
}

// Checks and parses `value` into `proto`.
template <typename Proto>
absl::Status Parse(absl::string_view value, absl::string_view what, Proto* proto) {
  MUSTER_ASSIGN_OR_RETURN(const absl::string_view payload, rocks::CheckedPayload(value, what));
  if (!proto->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError(absl::StrCat(what, ": cannot be parsed"));
  }
  return absl::OkStatus();
}

std::string What(absl::string_view part, uint64_t number) {
  return absl::StrCat("ledger: ", part, " of batch ", number);
}

}  // namespace

std::string BatchKey(uint64_t number) {
  std::string key;
  rocks::AppendKey(number, &key);
  return key;
}

std::string ItemsKey(uint64_t number, uint64_t first_index) {
  std::string key = BatchKey(number);
  rocks::AppendKey(first_index, &key);
  return key;
}

std::string EncodeRecord(const Batch& batch) {
  v1::BatchRecord record;
  record.set_number(batch.number);
  record.set_request_id(batch.request_id);
  record.set_job(batch.job);
  record.set_job_revision(batch.job_revision);
  record.set_job_definition(batch.job_definition);
  record.set_handler_version(batch.handler_version);
  record.set_tenant(batch.tenant);
  record.set_source_path(batch.source_path);
  record.set_source_header_hash(HashBytes(batch.source_header));
  record.set_source_size(batch.source_size);
  if (batch.source_content.has_value()) {
    record.set_source_content_hash(HashBytes(*batch.source_content));
  }
  ToProto(batch.created, record.mutable_created());
  if (batch.sla.has_value()) {
    record.mutable_sla()->set_seconds(absl::ToInt64Seconds(*batch.sla));
    record.mutable_sla()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(*batch.sla % absl::Seconds(1))));
  }
  return rocks::CheckedValue(record.SerializeAsString());
}

absl::Status DecodeRecord(absl::string_view value, uint64_t number, Batch* batch) {
  const std::string what = What("record", number);
  v1::BatchRecord record;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &record));
  // A sound record, but under another batch's key.
  if (record.number() != number) {
    return absl::DataLossError(absl::StrCat(what, ": it is that of batch ", record.number()));
  }
  batch->number = record.number();
  batch->request_id = record.request_id();
  batch->job = record.job();
  batch->job_revision = record.job_revision();
  batch->job_definition = record.job_definition();
  batch->handler_version = record.handler_version();
  batch->tenant = record.tenant();
  batch->source_path = record.source_path();
  MUSTER_ASSIGN_OR_RETURN(batch->source_header, HashFromBytes(record.source_header_hash(), what));
  batch->source_size = record.source_size();
  if (!record.source_content_hash().empty()) {
    MUSTER_ASSIGN_OR_RETURN(batch->source_content,
                            HashFromBytes(record.source_content_hash(), what));
  }
  batch->created = FromProto(record.created());
  if (record.has_sla()) {
    batch->sla = absl::Seconds(record.sla().seconds()) + absl::Nanoseconds(record.sla().nanos());
  }
  return absl::OkStatus();
}

std::string EncodeProgress(const Batch& batch) {
  v1::BatchProgress progress;
  progress.set_state(ToProto(batch.state));
  progress.set_source_bytes(batch.source_bytes);
  progress.set_items(batch.items);
  progress.set_transactions(batch.transactions);
  progress.set_enqueued_items(batch.enqueued_items);
  progress.set_refills(batch.refills);
  if (batch.completed.has_value()) ToProto(*batch.completed, progress.mutable_completed());
  return rocks::CheckedValue(progress.SerializeAsString());
}

absl::Status DecodeProgress(absl::string_view value, uint64_t number, Batch* batch) {
  const std::string what = What("progress", number);
  v1::BatchProgress progress;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &progress));
  MUSTER_ASSIGN_OR_RETURN(batch->state, FromProto(progress.state(), what));
  batch->source_bytes = progress.source_bytes();
  batch->items = progress.items();
  batch->transactions = progress.transactions();
  batch->enqueued_items = progress.enqueued_items();
  batch->refills = progress.refills();
  if (progress.has_completed()) batch->completed = FromProto(progress.completed());
  return absl::OkStatus();
}

std::string EncodeItems(absl::Span<const ItemBoundary> items) {
  v1::ItemRun run;
  for (const ItemBoundary& item : items) {
    v1::ItemBoundary* boundary = run.add_items();
    boundary->set_offset(item.offset);
    boundary->set_length(item.length);
    boundary->set_first_line(item.first_line);
    boundary->set_transactions(item.transactions);
    boundary->set_content_hash(HashBytes(item.content));
    boundary->set_oversized(item.oversized);
  }
  return rocks::CheckedValue(run.SerializeAsString());
}

absl::StatusOr<std::vector<ItemBoundary>> DecodeItems(absl::string_view value, uint64_t number) {
  const std::string what = What("item boundaries", number);
  v1::ItemRun run;
  MUSTER_RETURN_IF_ERROR(Parse(value, what, &run));
  std::vector<ItemBoundary> items;
  items.reserve(run.items_size());
  for (const v1::ItemBoundary& boundary : run.items()) {
    MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 content,
                            HashFromBytes(boundary.content_hash(), what));
    items.push_back({boundary.offset(), boundary.length(), boundary.first_line(),
                     boundary.transactions(), content, boundary.oversized()});
  }
  return items;
}

}  // namespace muster::ledger_rocksdb
