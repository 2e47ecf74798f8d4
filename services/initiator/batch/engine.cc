// SPDX-License-Identifier: Apache-2.0

// A batch is bound to a revision of its job; the ledger keeps that revision, so that RestoreJob can
// put it back.
#include "services/initiator/batch/engine.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/batch_trace.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/report/report_proto.h"
#include "services/initiator/batch/batch_spans.h"
#include "services/initiator/retention/remover.h"

namespace muster::initiator::batch {

namespace {

// How long the engine trusts that the registry still has the job, unless a queue shows a loss: with
// thousands of open batches, asking at every step would cost too much.
constexpr absl::Duration kJobTrust = absl::Minutes(1);

// Content that is not what was sealed stays as it is until a person puts it back. To look for that
// takes at most a share of the time, as the content may be long.
constexpr int kContentRecheckShare = 10;
constexpr absl::Duration kMinContentRecheck = absl::Seconds(1);
constexpr absl::Duration kMaxContentRecheck = absl::Minutes(1);

// Whether no item of the batch was made yet, so that it may still be refused for its content.
bool IsUnsplit(const ledger::Batch& batch) {
  return batch.state == ledger::BatchState::kOpen && batch.items == 0 &&
         !absl::StartsWith(batch.request_id, kRetryRequest);
}

constexpr char kAwaitsTurn[] = "muster.initiator/awaits_turn";

}  // namespace

bool AwaitsTurn(const absl::Status& step) { return step.GetPayload(kAwaitsTurn).has_value(); }

absl::StatusOr<StepResult> BatchEngine::Step(const std::stop_token& stop) {
  absl::StatusOr<StepResult> step = StepOnce(stop);
  // A batch that waits for something else must not hold up those behind it.
  if (!step.ok() || *step != StepResult::kHeldBack) LeaveLine();
  return step;
}

absl::StatusOr<StepResult> BatchEngine::StepOnce(const std::stop_token& stop) {
  const absl::StatusOr<ledger::Batch> recorded = tools_.stores.ledger->Get(number_);
  if (absl::IsNotFound(recorded.status())) return StepResult::kDone;  // another initiator's
  MUSTER_RETURN_IF_ERROR(recorded.status());
  const ledger::Batch& batch = *recorded;
  std::optional<base::TraceContext> trace = batch.trace;
  if (trace.has_value()) trace->parent = item::BatchSpanId(*trace, number_);
  const base::LogTrace log_trace(trace.has_value() ? &*trace : nullptr);
  if (batch.state == ledger::BatchState::kCancelled) return End(batch);
  if (batch.undecided && tools_.decide) {
    MUSTER_ASSIGN_OR_RETURN(const bool stays, tools_.decide(number_));
    if (!stays) return StepResult::kDone;
  }
  const absl::Status prepared = Prepare(batch, stop);
  if (input::HasNotArrived(prepared)) return StepResult::kNeedsContent;
  if (!refusal_.ok()) return StepResult::kRefused;
  MUSTER_RETURN_IF_ERROR(prepared);
  MUSTER_CHECK(enqueuer_ != nullptr && lost_items_.has_value(), "batch ", number_,
               " is prepared and has no enqueuer");
  if (batch.state == ledger::BatchState::kComplete) {
    if (tools_.on_complete) tools_.on_complete(batch);
    return End(batch);
  }
  absl::StatusOr<StepResult> advanced = Advance(batch, stop);
  if (!number_taken_) return advanced;
  MUSTER_RETURN_IF_ERROR(tools_.stores.ledger->Disown(
      number_, tools_.stores.clock->Now(),
      "its number is another batch's, for the NATS server lost numbers: submit it again"));
  MUSTER_RETURN_IF_ERROR(EndSuspension());
  base::Log(base::kError, "a batch has ended: its number is another initiator's",
            {{"batch", number_}, {"why", advanced.status().message()}});
  RecordEnd();
  return StepResult::kDisowned;
}

absl::StatusOr<StepResult> BatchEngine::End(const ledger::Batch& batch) {
  MUSTER_RETURN_IF_ERROR(CleanUp(batch));
  // One that was complete before this engine began has its span.
  if (advanced_ || batch.state == ledger::BatchState::kCancelled) RecordEnd(batch);
  return StepResult::kDone;
}

void BatchEngine::RecordEnd(const ledger::Batch& batch) const {
  RecordBatch(tools_.stores.spans, batch, batch.completed.value_or(tools_.stores.clock->Now()));
}

void BatchEngine::RecordEnd() const {
  const absl::StatusOr<ledger::Batch> ended = tools_.stores.ledger->Get(number_);
  if (ended.ok()) RecordEnd(*ended);
}

absl::StatusOr<StepResult> BatchEngine::Advance(const ledger::Batch& batch,
                                                const std::stop_token& stop) {
  advanced_ = true;
  if (batch.state == ledger::BatchState::kOpen || batch.enqueued_items < batch.items) {
    // Its own items may fill the queue although no worker can work on them.
    if (was_held_back_) MUSTER_RETURN_IF_ERROR(CheckWorkable(batch));
    MUSTER_RETURN_IF_ERROR(AwaitTurn(batch));
    const absl::Status enqueued = Enqueue(batch, stop);
    const bool has_arrived = !input::HasNotArrived(enqueued);
    if (has_arrived) MUSTER_RETURN_IF_ERROR(enqueued);
    if (enqueuer_->held_back()) return HoldBack();
    if (!has_arrived) return StepResult::kNeedsContent;
    PassTurnOn(batch);
    MUSTER_RETURN_IF_ERROR(AwaitRegistered());
    // The last result of a batch that was sealed before its last items were put completes it,
    // unless a process before this one put them, and died before it could be told.
    const bool was_sealed = batch.state == ledger::BatchState::kSealed;
    if (!was_sealed || may_be_counted_) {
      MUSTER_RETURN_IF_ERROR(tools_.report_client->CheckCompletion(number_));
    }
    return StepResult::kNeedsResults;
  }
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, AskReport());
  if (counted.cancelled.has_value()) {
    // The process that cancelled it died, or had no answer, before the ledger knew.
    MUSTER_RETURN_IF_ERROR(
        tools_.stores.ledger->Cancel(number_, counted.cancelled->when, counted.cancelled->reason));
    MUSTER_RETURN_IF_ERROR(EndSuspension());
    RecordEnd();
    return StepResult::kCancelled;
  }
  MUSTER_RETURN_IF_ERROR(RefillWhatIsLost(batch, counted));
  return StepResult::kNeedsResults;
}

std::optional<SplitProgress> BatchEngine::split_progress() const {
  const Progress* const progress = progress_;
  if (progress == nullptr) return std::nullopt;
  return SplitProgress{progress->transactions_read, progress->transactions_enqueued,
                       progress->bytes_read};
}

absl::Status BatchEngine::Prepare(const ledger::Batch& batch, const std::stop_token& stop) {
  if (enqueuer_ != nullptr) return absl::OkStatus();
  if (!job_.has_value()) {
    // Most batches of a job have the same definition.
    MUSTER_ASSIGN_OR_RETURN(job_, tools_.jobs == nullptr
                                      ? job::ParseJob(batch.job_definition, batch.job)
                                      : tools_.jobs->Parse(batch.job_definition, batch.job));
    owner_ = batch.owner;
    replaces_ = batch.replaces;
  }
  BeginToRegister();
  MUSTER_RETURN_IF_ERROR(queues_->Ensure(*job_));
  if (source_ == nullptr) {
    absl::StatusOr<std::unique_ptr<BatchSource>> source = OpenSource(batch, stop);
    if (absl::IsInvalidArgument(source.status())) refusal_ = source.status();
    MUSTER_RETURN_IF_ERROR(source.status());
    source_ = *std::move(source);
  }
  Options options = tools_.options;
  options.back_pressure = tools_.back_pressure;
  // Until the batch is registered, one run of items is put with each try: nothing counts them yet.
  options.before_next_run = [this] { return AwaitRegistered(); };
  options.late_incarnation = [this](const queue::QueueId& queue) {
    return queues_->LateIncarnation(queue);
  };
  auto enqueuer =
      std::make_unique<BatchEnqueuer>(&*job_, source_.get(), tools_.stores, std::move(options));
  lost_items_.emplace(*job_, tools_.options.account, tools_.stores.queues, tools_.report_client,
                      queues_->ScanOf(*job_), tools_.stores.clock);
  enqueuer->Resume(batch);
  enqueuer_ = std::move(enqueuer);
  progress_ = &enqueuer_->progress();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BatchSource>> BatchEngine::OpenSource(const ledger::Batch& batch,
                                                                     const std::stop_token& stop) {
  if (tools_.content == nullptr || !tools_.content->Stores(batch)) {
    return BatchSource::Open(batch.source_path, job_->input, IsUnsplit(batch));
  }
  if (!batch.content.empty()) return SourceOver(batch, SourceOf(batch.content));
  const bool was_whole =
      batch.state != ledger::BatchState::kOpen || batch.sealed_content.has_value();
  if (was_whole && !batch.content_deleted && !tools_.content->IsSealed(number_)) {
    // Otherwise the store would begin an empty upload, though the client has sent all of it.
    return absl::DataLossError(absl::StrCat("the content of batch ", number_, " is not there. Put ",
                                            tools_.content->PathOf(number_),
                                            " back, or cancel the batch and submit it again"));
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const input::ByteSource> content,
                          tools_.content->OpenContent(number_));
  MUSTER_RETURN_IF_ERROR(CheckContent(batch, &content, stop));
  return SourceOver(batch, std::move(content));
}

absl::StatusOr<std::unique_ptr<BatchSource>> BatchEngine::SourceOver(
    const ledger::Batch& batch, std::shared_ptr<const input::ByteSource> content) {
  if (IsUnsplit(batch)) MUSTER_RETURN_IF_ERROR(CheckNewContent(*content, job_->input));
  return BatchSource::Over(std::move(content), tools_.content->PathOf(number_), job_->input);
}

// Content that still arrives needs no check here: its reads are held against what arrived, and the
// seal compares all of it.
absl::Status BatchEngine::CheckContent(const ledger::Batch& batch,
                                       std::shared_ptr<const input::ByteSource>* content,
                                       const std::stop_token& stop) {
  const bool is_split =
      batch.state != ledger::BatchState::kOpen && batch.enqueued_items == batch.items;
  const bool is_whole = (*content)->size() != input::kStillGrowing;
  if (is_split || !is_whole) return absl::OkStatus();
  // It may have been sealed after `batch` was read.
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch sealed, tools_.stores.ledger->Get(number_));
  if (!sealed.sealed_content.has_value()) return absl::OkStatus();
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now < content_checked_again_at_) return content_damage_;
  absl::StatusOr<BlockHashes> hashes = CheckSealed(**content, *sealed.sealed_content, stop);
  const absl::Status same = hashes.status();
  if (same.ok()) {
    *content = std::make_shared<CheckedSource>(tools_.content->PathOf(number_), *content,
                                               *std::move(hashes));
  }
  if (!absl::IsDataLoss(same)) return same;
  const absl::Duration end = tools_.stores.clock->Monotonic();
  content_checked_again_at_ =
      end + std::clamp(kContentRecheckShare * (end - now), kMinContentRecheck, kMaxContentRecheck);
  content_damage_ = absl::DataLossError(absl::StrCat(
      "the content of batch ", number_, " is not what its submitter sealed: ", same.message(),
      ". Put ", tools_.content->PathOf(number_),
      " back from a backup, or cancel the batch and submit it again"));
  return content_damage_;
}

// On another thread, so that the first items reach workers meanwhile. A result that is counted
// before the report knows its batch is delivered again later. The task does not use the engine,
// which may be gone, as after a cancel, before a controller that hangs has answered.
void BatchEngine::BeginToRegister() {
  if (registered_ || registering_.valid()) return;
  const auto task = std::make_shared<std::packaged_task<absl::StatusOr<report::Progress>()>>(
      [client = tools_.report_client, shape = Shape()] { return client->RegisterBatch(shape); });
  registering_ = task->get_future();
  if (tools_.registrations == nullptr) return (*task)();
  tools_.registrations->Add([task] { (*task)(); });
}

absl::Status BatchEngine::NoteAnswer(absl::Status registered) {
  number_taken_ = absl::IsAlreadyExists(registered);
  return registered;
}

report::BatchShape BatchEngine::Shape() const {
  report::BatchShape shape = report::ShapeOf(number_, job_->schema());
  shape.owner = owner_;
  shape.replaces = replaces_;
  return shape;
}

absl::Status BatchEngine::AwaitRegistered() {
  BeginToRegister();
  if (registered_) return absl::OkStatus();
  MUSTER_CHECK(registering_.valid(), "batch ", number_, " is neither registered nor registering");
  const absl::StatusOr<report::Progress> progress = registering_.get();
  MUSTER_RETURN_IF_ERROR(NoteAnswer(progress.status()));
  may_be_counted_ = progress->items() > 0;
  registered_ = true;
  return absl::OkStatus();
}

// A user may have deleted a queue that existed. The engine puts its items again, like all items
// that a queue loses.
absl::Status BatchEngine::Enqueue(const ledger::Batch& batch, const std::stop_token& stop) {
  absl::Status enqueued = enqueuer_->Enqueue(number_, stop);
  if (!absl::IsNotFound(enqueued)) return enqueued;
  // The broker that lost a queue may have lost the job, too.
  MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
  MUSTER_RETURN_IF_ERROR(queues_->EnsureAnew(*job_));
  return enqueuer_->Enqueue(number_, stop);
}

absl::Status BatchEngine::AwaitTurn(const ledger::Batch& batch) {
  if (!job_->order_by.has_value()) return absl::OkStatus();
  while (put_below_ < number_) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t next,
                            tools_.stores.ledger->NextOpenOfJob(batch.job, put_below_));
    put_below_ = next == 0 ? number_ : std::min(next, number_);
    if (put_below_ == number_) break;
    const absl::StatusOr<ledger::Batch> earlier = tools_.stores.ledger->Get(next);
    const bool comes_first =
        earlier.ok() && !ledger::IsOver(earlier->state) &&
        (earlier->state == ledger::BatchState::kOpen || earlier->enqueued_items < earlier->items);
    if (comes_first) {
      absl::Status awaits = absl::UnavailableError(
          absl::StrCat("job '", batch.job, "' keeps the order of its batches: batch ",
                       earlier->number, ", which was taken in before, is not wholly put yet"));
      awaits.SetPayload(kAwaitsTurn, absl::Cord());
      return awaits;
    }
    if (!earlier.ok() && !absl::IsNotFound(earlier.status())) return earlier.status();
    put_below_ = next + 1;
  }
  return absl::OkStatus();
}

void BatchEngine::PassTurnOn(const ledger::Batch& batch) {
  if (!job_->order_by.has_value() || !tools_.on_turn) return;
  const absl::StatusOr<uint64_t> next = tools_.stores.ledger->NextOpenOfJob(batch.job, number_ + 1);
  // If this fails, the others look by themselves, a little later.
  if (next.value_or(0) != 0) tools_.on_turn(*next);
}

absl::StatusOr<StepResult> BatchEngine::HoldBack() {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, tools_.stores.ledger->Get(number_));
  hold_ = tools_.back_pressure->HoldBack(item::InputQueue(tools_.options.account, job_->name, 0),
                                         number_, batch.items - batch.enqueued_items);
  is_in_line_ = was_held_back_ = true;
  return StepResult::kHeldBack;
}

void BatchEngine::LeaveLine() {
  if (!is_in_line_) return;
  is_in_line_ = false;
  const std::optional<uint64_t> next =
      tools_.back_pressure->Leave(item::InputQueue(tools_.options.account, job_->name, 0), number_);
  if (next.has_value() && tools_.on_turn) tools_.on_turn(*next);
}

absl::Status BatchEngine::RestoreJob(const ledger::Batch& batch) {
  if (tools_.jobs == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool restored,
                          tools_.jobs->Restore({.name = batch.job,
                                                .definition = batch.job_definition,
                                                .revision = batch.job_revision,
                                                .updated = batch.created}));
  if (!restored) return absl::OkStatus();
  base::Log(base::kWarning, "put back what was gone of a job, from the ledger of its batch",
            {{"job", batch.job}, {"revision", batch.job_revision}, {"batch", batch.number}});
  base::LogUnlessOk(base::kWarning, "others learn of a restored job only when they look for it",
                    tools_.stores.bus->Publish({.from = tools_.options.instance,
                                                .payload = bus::JobChangedEvent{.job = batch.job}}),
                    {{"job", batch.job}});
  return absl::OkStatus();
}

absl::Status BatchEngine::RestoreJobIfDue(const ledger::Batch& batch) {
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now < job_trusted_until_) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
  job_trusted_until_ = now + kJobTrust;
  return absl::OkStatus();
}

absl::StatusOr<report::Progress> BatchEngine::AskReport() {
  // Registers at every check: the report may have been lost, or restored from an older copy.
  MUSTER_RETURN_IF_ERROR(NoteAnswer(tools_.report_client->RegisterBatch(Shape()).status()));
  return tools_.report_client->GetProgress(number_);
}

absl::Status BatchEngine::CleanUp(const ledger::Batch& batch) {
  if (tools_.damaged != nullptr) tools_.damaged->Clear(number_);
  MUSTER_RETURN_IF_ERROR(EndSuspension());
  return retention::DeleteNeedlessBlobs(tools_.stores.ledger, tools_.report_client,
                                        tools_.stores.blobs, batch);
}

}  // namespace muster::initiator::batch
