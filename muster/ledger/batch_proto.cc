// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/batch_proto.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/time_util.h"
#include "muster/base/check.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/v1/batch.pb.h"

namespace muster::ledger {
namespace {

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
  MUSTER_CHECK(false, "state ", static_cast<int>(state));
  return v1::BATCH_STATE_UNSPECIFIED;
}

absl::StatusOr<BatchState> FromProto(v1::BatchState state) {
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
      return absl::DataLossError(absl::StrCat("unknown state ", state));
  }
}

// The fields that a newer muster has written, as bytes of the wire format.
std::string UnknownOf(const google::protobuf::Message& form) {
  std::string bytes;
  form.GetReflection()->GetUnknownFields(form).SerializeToString(&bytes);
  return bytes;
}

absl::StatusOr<base::Fingerprint128> HashFrom(absl::string_view bytes) {
  const auto hash = base::Fingerprint128::FromBytes(bytes);
  if (!hash.has_value()) return absl::DataLossError("malformed hash");
  return *hash;
}

}  // namespace

v1::MultilineRecords ToProto(const base::MultilineRecords& multiline) {
  v1::MultilineRecords form;
  form.set_records(multiline.records);
  form.set_lines(multiline.lines);
  form.mutable_first_lines()->Add(multiline.first.begin(), multiline.first.end());
  return form;
}

base::MultilineRecords FromProto(const v1::MultilineRecords& form) {
  base::MultilineRecords multiline{form.records(), form.lines(), {}};
  multiline.first.assign(form.first_lines().begin(), form.first_lines().end());
  return multiline;
}

v1::BatchRecord RecordOf(const Batch& batch) {
  v1::BatchRecord record;
  record.set_number(batch.number);
  record.set_request_id(batch.request_id);
  record.set_job(batch.job);
  record.set_job_revision(batch.job_revision);
  record.set_job_definition(batch.job_definition);
  record.set_handler_version(batch.handler_version);
  record.set_tenant(batch.tenant);
  record.set_source_path(batch.source_path);
  record.set_source_header_hash(batch.source_header.ToBytes());
  record.set_source_size(batch.source_size);
  if (batch.source_content.has_value()) {
    record.set_source_content_hash(batch.source_content->ToBytes());
  }
  *record.mutable_created() = base::ToProto(batch.created);
  if (batch.sla.has_value()) *record.mutable_sla() = base::ToProto(*batch.sla);
  if (batch.trace.has_value()) {
    record.set_trace_context(batch.trace->ToBytes());
    record.set_trace_state(batch.trace->state);
  }
  record.set_content(batch.content);
  record.set_content_path(batch.content_path);
  record.set_request_claimed(batch.request_claimed);
  if (batch.retention.has_value()) {
    *record.mutable_keep_content() = base::ToProto(batch.retention->content);
    *record.mutable_keep_items() = base::ToProto(batch.retention->items);
    *record.mutable_keep_batch() = base::ToProto(batch.retention->batch);
  }
  record.set_owner(batch.owner);
  for (const auto& [name, value] : batch.labels) {
    v1::Label* const label = record.add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  record.mutable_replaces()->Add(batch.replaces.begin(), batch.replaces.end());
  record.MergeFromString(batch.unknown_of_record);
  return record;
}

absl::Status Fill(const v1::BatchRecord& record, Batch* batch) {
  batch->unknown_of_record = UnknownOf(record);
  batch->number = record.number();
  batch->request_id = record.request_id();
  batch->job = record.job();
  batch->job_revision = record.job_revision();
  batch->job_definition = record.job_definition();
  batch->handler_version = record.handler_version();
  batch->tenant = record.tenant();
  batch->source_path = record.source_path();
  MUSTER_ASSIGN_OR_RETURN(batch->source_header, HashFrom(record.source_header_hash()));
  batch->source_size = record.source_size();
  if (!record.source_content_hash().empty()) {
    MUSTER_ASSIGN_OR_RETURN(batch->source_content, HashFrom(record.source_content_hash()));
  }
  batch->created = base::FromProto(record.created());
  if (record.has_sla()) batch->sla = base::FromProto(record.sla());
  batch->trace = base::TraceContext::FromBytes(record.trace_context());
  if (batch->trace.has_value()) batch->trace->state = record.trace_state();
  batch->content = record.content();
  batch->content_path = record.content_path();
  batch->request_claimed = record.request_claimed();
  if (record.has_keep_content() && record.has_keep_items() && record.has_keep_batch()) {
    batch->retention = Retention{.content = base::FromProto(record.keep_content()),
                                 .items = base::FromProto(record.keep_items()),
                                 .batch = base::FromProto(record.keep_batch())};
  }
  batch->owner = record.owner();
  for (const v1::Label& label : record.labels()) batch->labels[label.name()] = label.value();
  batch->replaces.assign(record.replaces().begin(), record.replaces().end());
  return absl::OkStatus();
}

v1::BatchProgress ProgressOf(const Batch& batch) {
  v1::BatchProgress progress;
  progress.set_state(ToProto(batch.state));
  progress.set_source_bytes(batch.source_bytes);
  progress.set_items(batch.items);
  progress.set_transactions(batch.transactions);
  progress.set_enqueued_items(batch.enqueued_items);
  progress.set_refills(batch.refills);
  if (batch.completed.has_value()) *progress.mutable_completed() = base::ToProto(*batch.completed);
  progress.set_cancel_reason(batch.cancel_reason);
  if (batch.sealed_content.has_value()) {
    progress.mutable_sealed_content()->set_size(batch.sealed_content->size);
    progress.mutable_sealed_content()->set_content_hash(batch.sealed_content->hash.ToBytes());
  }
  for (const PutMark& mark : batch.put_marks) {
    v1::PutMark* const stored = progress.add_put_marks();
    stored->set_incarnation(mark.incarnation);
    stored->set_end(mark.end);
  }
  if (batch.multiline.records > 0) *progress.mutable_multiline() = ToProto(batch.multiline);
  progress.set_content_deleted(batch.content_deleted);
  progress.set_items_deleted(batch.items_deleted);
  progress.set_disowned(batch.disowned);
  progress.set_blobs_deleted(batch.blobs_deleted);
  progress.set_undecided(batch.undecided);
  progress.set_upload_expired(batch.upload_expired);
  progress.MergeFromString(batch.unknown_of_progress);
  return progress;
}

absl::Status Fill(const v1::BatchProgress& progress, Batch* batch) {
  batch->unknown_of_progress = UnknownOf(progress);
  MUSTER_ASSIGN_OR_RETURN(batch->state, FromProto(progress.state()));
  batch->source_bytes = progress.source_bytes();
  batch->items = progress.items();
  batch->transactions = progress.transactions();
  batch->enqueued_items = progress.enqueued_items();
  batch->refills = progress.refills();
  if (progress.has_completed()) batch->completed = base::FromProto(progress.completed());
  batch->cancel_reason = progress.cancel_reason();
  if (progress.has_sealed_content()) {
    const v1::SealedContent& sealed = progress.sealed_content();
    MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 hash, HashFrom(sealed.content_hash()));
    batch->sealed_content = SealedContent{sealed.size(), hash};
  }
  batch->put_marks.clear();
  for (const v1::PutMark& mark : progress.put_marks()) {
    batch->put_marks.push_back({mark.incarnation(), mark.end()});
  }
  batch->multiline = FromProto(progress.multiline());
  batch->content_deleted = progress.content_deleted();
  batch->items_deleted = progress.items_deleted();
  batch->disowned = progress.disowned();
  batch->blobs_deleted = progress.blobs_deleted();
  batch->upload_expired = progress.upload_expired();
  // An older muster passes the field by, and may have put items or ended the batch since.
  batch->undecided =
      progress.undecided() && batch->state == BatchState::kOpen && batch->enqueued_items == 0;
  return absl::OkStatus();
}

void AddTo(absl::Span<const ItemBoundary> items, ItemBoundaryProtos* protos) {
  protos->Reserve(protos->size() + static_cast<int>(items.size()));
  for (const ItemBoundary& item : items) {
    v1::ItemBoundary* boundary = protos->Add();
    boundary->set_offset(item.offset);
    boundary->set_length(item.length);
    boundary->set_first_line(item.first_line);
    boundary->set_transactions(item.transactions);
    boundary->set_content_hash(item.content.ToBytes());
    boundary->set_oversized(item.oversized);
    if (item.window.has_value()) {
      boundary->mutable_window()->set_offset(item.window->offset);
      boundary->mutable_window()->set_line(item.window->line);
    }
  }
}

absl::StatusOr<std::vector<ItemBoundary>> FromProtos(const ItemBoundaryProtos& protos) {
  std::vector<ItemBoundary> items;
  items.reserve(protos.size());
  for (const v1::ItemBoundary& boundary : protos) {
    MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 content, HashFrom(boundary.content_hash()));
    items.push_back({boundary.offset(), boundary.length(), boundary.first_line(),
                     boundary.transactions(), content, boundary.oversized()});
    if (boundary.has_window()) {
      items.back().window = ItemWindow{boundary.window().offset(), boundary.window().line()};
    }
  }
  return items;
}

}  // namespace muster::ledger
