// SPDX-License-Identifier: Apache-2.0
#include "muster/report/report_proto.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"
#include "muster/base/output_proto.h"
#include "muster/base/proto_time.h"

namespace muster::report {

v1::CountingProgress ToProto(const Progress& progress) {
  v1::CountingProgress proto;
  proto.set_batch(progress.batch);
  proto.set_job(progress.job);
  proto.set_job_revision(progress.job_revision);
  proto.set_items_counted(progress.items_counted);
  proto.set_items_dead(progress.items_dead);
  proto.set_transactions(progress.transactions);
  proto.set_aggregated(progress.aggregated);
  proto.set_rejected(progress.rejected);
  proto.set_dead_lettered(progress.dead_lettered);
  proto.set_duplicates(progress.duplicates);
  proto.set_conflicts(progress.conflicts);
  proto.set_attempts(progress.attempts);
  if (progress.first_counted.has_value()) {
    *proto.mutable_first_counted() = base::ToProto(*progress.first_counted);
  }
  if (progress.last_counted.has_value()) {
    *proto.mutable_last_counted() = base::ToProto(*progress.last_counted);
  }
  proto.set_receipt_revision(progress.receipt_revision);
  proto.set_reopened(progress.reopened);
  if (progress.cancelled.has_value()) {
    *proto.mutable_cancelled() = base::ToProto(progress.cancelled->when);
    proto.set_cancel_reason(progress.cancelled->reason);
  }
  proto.set_owner(progress.owner);
  proto.set_retry_of(progress.retry_of);
  proto.mutable_retried_in()->Add(progress.retried_in.begin(), progress.retried_in.end());
  proto.mutable_replaces()->Add(progress.replaces.begin(), progress.replaces.end());
  proto.set_replaced_by(progress.replaced_by);
  return proto;
}

Progress FromProto(const v1::CountingProgress& proto) {
  Progress progress;
  progress.batch = proto.batch();
  progress.job = proto.job();
  progress.job_revision = proto.job_revision();
  progress.items_counted = proto.items_counted();
  progress.items_dead = proto.items_dead();
  progress.transactions = proto.transactions();
  progress.aggregated = proto.aggregated();
  progress.rejected = proto.rejected();
  progress.dead_lettered = proto.dead_lettered();
  progress.duplicates = proto.duplicates();
  progress.conflicts = proto.conflicts();
  progress.attempts = proto.attempts();
  if (proto.has_first_counted()) {
    progress.first_counted = base::FromProto(proto.first_counted());
  }
  if (proto.has_last_counted()) {
    progress.last_counted = base::FromProto(proto.last_counted());
  }
  progress.receipt_revision = proto.receipt_revision();
  progress.reopened = proto.reopened();
  if (proto.has_cancelled()) {
    progress.cancelled = {base::FromProto(proto.cancelled()), proto.cancel_reason()};
  }
  progress.owner = proto.owner();
  progress.retry_of = proto.retry_of();
  progress.retried_in.assign(proto.retried_in().begin(), proto.retried_in().end());
  progress.replaces.assign(proto.replaces().begin(), proto.replaces().end());
  progress.replaced_by = proto.replaced_by();
  return progress;
}

v1::PartialRow ToProto(const GroupRow& row) {
  v1::PartialRow proto;
  for (const std::string& key : row.keys) proto.add_keys(key);
  for (const base::Decimal& measure : row.measures) proto.add_measures(measure.ToString());
  return proto;
}

absl::StatusOr<GroupRow> FromProto(const v1::PartialRow& proto, const GroupShape& shape) {
  if (static_cast<size_t>(proto.keys_size()) != shape.keys.size() ||
      static_cast<size_t>(proto.measures_size()) != shape.measures.size()) {
    return absl::DataLossError(absl::StrCat("group '", shape.name, "': a row of ",
                                            proto.keys_size(), " keys and ", proto.measures_size(),
                                            " measures is none of it"));
  }
  GroupRow row;
  row.keys.assign(proto.keys().begin(), proto.keys().end());
  for (const std::string& text : proto.measures()) {
    const std::optional<base::Decimal> measure = base::Decimal::TryParse(text);
    if (!measure.has_value()) {
      return absl::DataLossError(
          absl::StrCat("group '", shape.name, "': '", text, "' is no number"));
    }
    row.measures.push_back(*measure);
  }
  return row;
}

v1::RejectedTransaction ToProto(const RejectionRow& row) {
  v1::RejectedTransaction proto;
  proto.set_item(row.item);
  proto.set_line(row.line);
  proto.set_reason(row.reason);
  proto.set_retried_in(row.retried_in);
  proto.set_retry_of_line(row.retry_of_line);
  return proto;
}

RejectionRow FromProto(const v1::RejectedTransaction& proto) {
  RejectionRow row;
  row.item = proto.item();
  row.line = proto.line();
  row.reason = proto.reason();
  row.retried_in = proto.retried_in();
  row.retry_of_line = proto.retry_of_line();
  return row;
}

v1::RetryClaim ToProto(const RetryClaim& claim) {
  v1::RetryClaim proto;
  proto.set_retry(claim.retry);
  proto.set_transactions(claim.transactions);
  proto.set_retried_in(claim.retried_in);
  return proto;
}

RetryClaim FromProto(const v1::RetryClaim& proto) {
  return {proto.retry(), proto.transactions(), proto.retried_in()};
}

BatchShape ShapeOf(uint64_t batch, const handler::JobSchema& schema) {
  BatchShape shape{batch, schema.job, schema.revision, {}};
  for (const handler::GroupSchema& group : schema.groups) {
    GroupShape group_shape{group.name, group.keys, {}};
    for (const handler::MeasureSchema& measure : group.measures) {
      group_shape.measures.push_back(
          {measure.name, measure.type == handler::MeasureSchema::Type::kInt, measure.scale});
    }
    shape.groups.push_back(std::move(group_shape));
  }
  shape.outputs = schema.outputs;
  return shape;
}

v1::JobSchema ToProto(const BatchShape& shape) {
  v1::JobSchema proto;
  proto.set_job(shape.job);
  proto.set_revision(shape.job_revision);
  for (const GroupShape& group : shape.groups) *proto.add_groups() = ToProto(group);
  for (const base::OutputColumn& column : shape.outputs) {
    *proto.add_outputs() = base::ToProto(column);
  }
  return proto;
}

v1::GroupSchema ToProto(const GroupShape& shape) {
  v1::GroupSchema proto;
  proto.set_name(shape.name);
  for (const std::string& key : shape.keys) proto.add_keys(key);
  for (const MeasureShape& measure : shape.measures) {
    v1::MeasureSchema* const added = proto.add_measures();
    added->set_name(measure.name);
    added->set_type(measure.is_int ? v1::MEASURE_TYPE_INT : v1::MEASURE_TYPE_DECIMAL);
    added->set_scale(measure.scale);
  }
  return proto;
}

absl::StatusOr<GroupShape> FromProto(const v1::GroupSchema& proto) {
  GroupShape shape;
  shape.name = proto.name();
  shape.keys.assign(proto.keys().begin(), proto.keys().end());
  for (const v1::MeasureSchema& measure : proto.measures()) {
    if (measure.type() != v1::MEASURE_TYPE_INT && measure.type() != v1::MEASURE_TYPE_DECIMAL) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group '", proto.name(), "': measure '", measure.name(), "' is neither int nor decimal"));
    }
    shape.measures.push_back(
        {measure.name(), measure.type() == v1::MEASURE_TYPE_INT, measure.scale()});
  }
  return shape;
}

v1::GetTallyResponse ToProto(const Tally& tally) {
  v1::GetTallyResponse proto;
  *proto.mutable_progress() = ToProto(tally.progress);
  proto.mutable_items_by_version()->insert(tally.items_by_version.begin(),
                                           tally.items_by_version.end());
  proto.set_items_sha256(tally.items_sha256);
  proto.set_rows_sha256(tally.rows_sha256);
  proto.set_rejections_sha256(tally.rejections_sha256);
  return proto;
}

Tally FromProto(const v1::GetTallyResponse& proto) {
  Tally tally;
  tally.progress = FromProto(proto.progress());
  tally.items_by_version.insert(proto.items_by_version().begin(), proto.items_by_version().end());
  tally.items_sha256 = proto.items_sha256();
  tally.rows_sha256 = proto.rows_sha256();
  tally.rejections_sha256 = proto.rejections_sha256();
  return tally;
}

}  // namespace muster::report
