// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/status.h"

#include <algorithm>

#include "muster/base/proto_time.h"
#include "muster/item/promise.h"
#include "muster/ledger/batch_proto.h"
#include "muster/queue/queue_proto.h"
#include "muster/v1/batch.pb.h"

namespace muster::initiator::batch {
namespace {

using base::ToProto;

// The counts were read at different moments, so each is limited to the one before it.
v1::BatchFlow FlowOf(const BatchStatus& batch_status) {
  const ledger::Batch& batch = batch_status.batch;
  const auto counted = static_cast<uint64_t>(batch_status.counted.transactions);
  uint64_t read = batch.transactions;
  uint64_t queued = batch.enqueued_items == batch.items ? batch.transactions : 0;
  if (batch_status.split.has_value()) {
    read = std::max(read, batch_status.split->transactions_read);
    queued = std::max(queued, batch_status.split->transactions_enqueued);
  }
  read = std::max(read, counted);
  queued = std::clamp(queued, counted, read);
  v1::BatchFlow flow;
  flow.set_read(static_cast<int64_t>(read));
  flow.set_queued(static_cast<int64_t>(queued));
  flow.set_processed(static_cast<int64_t>(counted));
  flow.set_committed(static_cast<int64_t>(counted));
  flow.set_split(batch_status.split_share);
  return flow;
}

void SetTimes(const BatchStatus& batch_status, absl::Time now, v1::BatchStatus* status) {
  const ledger::Batch& batch = batch_status.batch;
  *status->mutable_created() = ToProto(batch.created);
  if (batch.state == ledger::BatchState::kComplete && batch.completed.has_value()) {
    *status->mutable_completed() = ToProto(*batch.completed);
  }
  const auto promise = item::StateOfPromise(batch, status->progress().read(),
                                            batch_status.counted.transactions, now);
  if (promise.has_value()) {
    *status->mutable_sla() = ToProto(promise->sla);
    *status->mutable_deadline() = ToProto(promise->deadline);
    *status->mutable_late_by() = ToProto(promise->late_by);
    status->set_at_risk(promise->at_risk);
  }
  const double seconds = absl::ToDoubleSeconds(batch.completed.value_or(now) - batch.created);
  status->set_seconds(std::max(seconds, 0.0));
  if (seconds > 0) status->set_transactions_per_second(status->transactions() / seconds);
}

}  // namespace

v1::BatchStatus StatusOf(const BatchStatus& batch_status, uint64_t revision, absl::Time now) {
  const ledger::Batch& batch = batch_status.batch;
  const report::Progress& counted = batch_status.counted;
  v1::BatchStatus status;
  status.set_batch(batch.number);
  status.set_revision(revision);
  status.set_job(batch.job);
  status.set_job_revision(batch.job_revision);
  status.set_handler_version(batch.handler_version);
  status.set_tenant(batch.tenant);
  status.set_request_id(queue::ProtoText(batch.request_id));
  status.set_state(ledger::ProgressOf(batch).state());
  status.set_cancel_reason(batch.cancel_reason);
  status.set_complete(batch.state == ledger::BatchState::kComplete);
  *status.mutable_progress() = FlowOf(batch_status);
  status.set_transactions(counted.transactions);
  status.set_aggregated(counted.aggregated);
  status.set_rejected(counted.rejected);
  status.set_dead_lettered(counted.dead_lettered);
  status.set_duplicates_dropped(counted.duplicates);
  status.set_items(counted.items());
  status.set_items_dead(counted.items_dead);
  status.set_attempts(counted.attempts);
  SetTimes(batch_status, now, &status);
  if (batch.trace.has_value()) status.set_traceparent(batch.trace->ToTraceparent());
  if (!batch_status.problem.ok())
    status.set_problem(queue::ProtoText(batch_status.problem.message()));
  status.mutable_labels()->insert(batch.labels.begin(), batch.labels.end());
  status.set_counts_problem(queue::ProtoText(batch_status.counts_problem.message()));
  status.set_retry_of(counted.retry_of);
  status.mutable_retried_in()->Add(counted.retried_in.begin(), counted.retried_in.end());
  status.mutable_replaces()->Add(counted.replaces.begin(), counted.replaces.end());
  status.set_replaced_by(counted.replaced_by);
  if (batch.multiline.records > 0) *status.mutable_multiline() = ledger::ToProto(batch.multiline);
  status.set_held_back_items(static_cast<int64_t>(batch_status.held_back_items));
  if (const auto& problem = batch_status.removal_problem; problem.has_value()) {
    status.set_removal_problem(queue::ProtoText(problem->why.message()));
    *status.mutable_removal_problem_since() = ToProto(problem->since);
  }
  return status;
}

}  // namespace muster::initiator::batch
