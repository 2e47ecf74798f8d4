#include "muster/report/progress.h"

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
  return progress;
}

}  // namespace muster::report
