// A batch is bound to a revision of its job; the ledger keeps
// that revision, so that RestoreJob can put it back.

#include "services/initiator/batch/engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/report/report_proto.h"
#include "services/initiator/batch/remover.h"

namespace muster::initiator::batch {

namespace {

// Puts the job of a batch back if the registry has lost it (JobRegistry::Restore), and publishes
// that to processors as `instance`. Nothing is owned.
absl::Status RestoreInto(const ledger::Batch& batch, job::JobRegistry* jobs, bus::TriggerBus* bus,
                         const std::string& instance) {
  MUSTER_ASSIGN_OR_RETURN(const bool restored, jobs->Restore({.name = batch.job,
                                                              .definition = batch.job_definition,
                                                              .revision = batch.job_revision,
                                                              .updated = batch.created}));
  if (!restored) return absl::OkStatus();
  base::Log(base::kWarning, "put back a job that was lost, from the ledger of its batch",
            {{"job", batch.job}, {"revision", batch.job_revision}, {"batch", batch.number}});
  base::LogUnlessOk(
      base::kWarning, "others learn of a restored job only when they look for it",
      bus->Publish({.from = instance, .payload = bus::JobChangedEvent{.job = batch.job}}),
      {{"job", batch.job}});
  return absl::OkStatus();
}

// A refill is fruitless if no further item is counted until the next one. After so many in a row
// the queue cannot be trusted: the batch has a problem, and the pauses before the next refill have
// grown.
constexpr int kMaxFruitlessRefills = 5;
constexpr absl::Duration kMinRefillPause = absl::Seconds(1);
constexpr absl::Duration kMaxRefillPause = absl::Minutes(2);

// How long the engine trusts that the registry still has the job, unless a queue shows a loss: with
// thousands of open batches, asking at every step would cost too much.
constexpr absl::Duration kJobTrust = absl::Minutes(1);

// Content that is not what was sealed is read again only so often: it may be long, and stays as it
// is until a person puts it back.
constexpr absl::Duration kContentRecheck = absl::Minutes(1);

// Longer than a restart of the workers that fit a batch: to take its items out of the queue and put
// them again costs more than to give them back for so long.
constexpr absl::Duration kSuspendAfter = absl::Minutes(1);

}  // namespace

absl::StatusOr<StepResult> BatchEngine::Step(const std::stop_token& stop) {
  const absl::StatusOr<ledger::Batch> recorded = tools_.stores.ledger->Get(number_);
  if (absl::IsNotFound(recorded.status())) return StepResult::kDone;  // another initiator's
  MUSTER_RETURN_IF_ERROR(recorded.status());
  const ledger::Batch& batch = *recorded;
  if (batch.state == ledger::BatchState::kCancelled) {
    MUSTER_RETURN_IF_ERROR(EndSuspension());
    MUSTER_RETURN_IF_ERROR(DeleteBlobs(batch));
    return StepResult::kDone;
  }
  const absl::Status prepared = Prepare(batch, stop);
  if (input::HasNotArrived(prepared)) return StepResult::kNeedsContent;
  if (!refusal_.ok()) return StepResult::kRefused;
  MUSTER_RETURN_IF_ERROR(prepared);
  MUSTER_CHECK(enqueuer_ != nullptr && lost_items_.has_value(), "batch ", number_,
               " is prepared and has no enqueuer");
  if (batch.state == ledger::BatchState::kComplete) {
    MUSTER_RETURN_IF_ERROR(EndSuspension());
    MUSTER_RETURN_IF_ERROR(DeleteBlobs(batch));
    return StepResult::kDone;
  }
  absl::StatusOr<StepResult> advanced = Advance(batch, stop);
  if (!number_taken_) return advanced;
  MUSTER_RETURN_IF_ERROR(tools_.stores.ledger->Disown(
      number_, tools_.stores.clock->Now(),
      "its number is another batch's, for the NATS server lost numbers: submit it again"));
  MUSTER_RETURN_IF_ERROR(EndSuspension());
  base::Log(base::kError, "a batch has ended: its number is another initiator's",
            {{"batch", number_}, {"why", advanced.status().message()}});
  return StepResult::kDisowned;
}

absl::StatusOr<StepResult> BatchEngine::Advance(const ledger::Batch& batch,
                                                const std::stop_token& stop) {
  if (batch.state == ledger::BatchState::kOpen || batch.enqueued_items < batch.items) {
    const absl::Status enqueued = Enqueue(batch, stop);
    if (input::HasNotArrived(enqueued)) return StepResult::kNeedsContent;
    MUSTER_RETURN_IF_ERROR(enqueued);
    MUSTER_RETURN_IF_ERROR(AwaitRegistered());
    MUSTER_RETURN_IF_ERROR(tools_.report_client->CheckCompletion(number_));
    return StepResult::kNeedsResults;
  }
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, AskReport());
  if (counted.cancelled.has_value()) {
    // The process that cancelled it died, or had no answer, before the ledger knew.
    MUSTER_RETURN_IF_ERROR(
        tools_.stores.ledger->Cancel(number_, counted.cancelled->when, counted.cancelled->reason));
    MUSTER_RETURN_IF_ERROR(EndSuspension());
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
    MUSTER_ASSIGN_OR_RETURN(job_, job::ParseJob(batch.job_definition, batch.job));
    owner_ = batch.owner;
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
  // Until the batch is registered, no more than one run of items waits to be counted.
  options.before_next_run = [this] { return AwaitRegistered(); };
  options.late_incarnation = [this](const queue::QueueId& queue) {
    return queues_->LateIncarnation(queue);
  };
  auto enqueuer =
      std::make_unique<BatchEnqueuer>(&*job_, source_.get(), tools_.stores, std::move(options));
  lost_items_.emplace(*job_, tools_.options.account, tools_.stores.queues, tools_.report_client);
  enqueuer->Resume(batch);
  enqueuer_ = std::move(enqueuer);
  progress_ = &enqueuer_->progress();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BatchSource>> BatchEngine::OpenSource(const ledger::Batch& batch,
                                                                     const std::stop_token& stop) {
  if (tools_.content == nullptr || !tools_.content->Stores(batch)) {
    return BatchSource::Open(batch.source_path, job_->input);
  }
  if (!batch.content.empty()) {
    return BatchSource::Over(SourceOf(batch.content), tools_.content->PathOf(number_), job_->input);
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const input::ByteSource> content,
                          tools_.content->OpenContent(number_));
  MUSTER_RETURN_IF_ERROR(CheckContent(batch, *content, stop));
  return BatchSource::Over(std::move(content), tools_.content->PathOf(number_), job_->input);
}

// Content that still arrives, or is sealed later, needs no check here: the seal compares all of it.
absl::Status BatchEngine::CheckContent(const ledger::Batch& batch, const input::ByteSource& content,
                                       const std::stop_token& stop) {
  const bool is_split =
      batch.state != ledger::BatchState::kOpen && batch.enqueued_items == batch.items;
  const bool is_whole = content.size() != input::kStillGrowing;
  if (is_split || !is_whole || !batch.sealed_content.has_value()) return absl::OkStatus();
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now < content_checked_again_at_) return content_damage_;
  const absl::Status same = CheckSealed(content, *batch.sealed_content, stop);
  if (!absl::IsDataLoss(same)) return same;
  content_checked_again_at_ = now + kContentRecheck;
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
  const auto task = std::make_shared<std::packaged_task<absl::Status()>>(
      [client = tools_.report_client, shape = Shape()] {
        return client->RegisterBatch(shape).status();
      });
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
  return shape;
}

absl::Status BatchEngine::AwaitRegistered() {
  BeginToRegister();
  if (registered_) return absl::OkStatus();
  MUSTER_CHECK(registering_.valid(), "batch ", number_, " is neither registered nor registering");
  MUSTER_RETURN_IF_ERROR(NoteAnswer(registering_.get()));
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

absl::Status BatchEngine::RestoreJob(const ledger::Batch& batch) {
  if (tools_.jobs == nullptr) return absl::OkStatus();
  return RestoreInto(batch, tools_.jobs, tools_.stores.bus, tools_.options.instance);
}

absl::Status BatchEngine::RestoreJobIfDue(const ledger::Batch& batch) {
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now < job_trusted_until_) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
  job_trusted_until_ = now + kJobTrust;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> BatchEngine::FindLost(const ledger::Batch& batch) {
  absl::StatusOr<std::vector<uint64_t>> lost = lost_items_->FindLost(batch);
  if (!absl::IsNotFound(lost.status())) return lost;
  MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
  MUSTER_RETURN_IF_ERROR(queues_->EnsureAnew(*job_));
  return lost_items_->FindLost(batch);
}

absl::StatusOr<std::vector<ledger::PutMark>> BatchEngine::MarkFromNowOn(
    const ledger::Batch& batch) {
  absl::StatusOr<std::vector<ledger::PutMark>> marks = lost_items_->MarksOfNow();
  if (absl::IsNotFound(marks.status())) {
    MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
    MUSTER_RETURN_IF_ERROR(queues_->EnsureAnew(*job_));
    marks = lost_items_->MarksOfNow();
  }
  MUSTER_RETURN_IF_ERROR(marks.status());
  MUSTER_RETURN_IF_ERROR(tools_.stores.ledger->MarkEnqueued(number_, batch.enqueued_items, *marks));
  return marks;
}

absl::Status BatchEngine::CheckSuspension(const ledger::Batch& batch) {
  if (tools_.suspended == nullptr) return absl::OkStatus();
  if (batch.handler_version.empty() || !tools_.no_worker_fits(batch)) {
    misfit_since_ = absl::InfiniteDuration();
    return EndSuspension();
  }
  const absl::Duration now = tools_.stores.clock->Monotonic();
  misfit_since_ = std::min(misfit_since_, now);
  if (!tools_.suspended->Contains(number_)) {
    if (now - misfit_since_ < kSuspendAfter) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(tools_.suspended->Add(number_));
    base::Log(base::kWarning, "the items of a batch that no worker fits leave the queue",
              {{"batch", number_}, {"handler_version", batch.handler_version}});
  }
  return absl::UnavailableError(absl::StrCat("no processor has handler version '",
                                             batch.handler_version, "' of job '", batch.job,
                                             "': its items wait in the ledger until one has"));
}

absl::Status BatchEngine::EndSuspension() {
  if (tools_.suspended == nullptr || !tools_.suspended->Contains(number_)) return absl::OkStatus();
  return tools_.suspended->Remove(number_);
}

absl::StatusOr<report::Progress> BatchEngine::AskReport() {
  // Registers at every check: the report may have been lost, or restored from an older copy.
  MUSTER_RETURN_IF_ERROR(NoteAnswer(tools_.report_client->RegisterBatch(Shape()).status()));
  return tools_.report_client->GetProgress(number_);
}

absl::Status BatchEngine::RefillWhatIsLost(const ledger::Batch& batch,
                                           const report::Progress& counted) {
  if (static_cast<uint64_t>(counted.items()) >= batch.items) {
    // An earlier request may have been lost; and the answer says why there is no receipt yet.
    return tools_.report_client->CheckCompletion(number_);
  }
  MUSTER_RETURN_IF_ERROR(RestoreJobIfDue(batch));
  MUSTER_RETURN_IF_ERROR(CheckSuspension(batch));
  ledger::Batch marked = batch;
  if (marked.put_marks.size() != lost_items_->partitions()) {
    MUSTER_ASSIGN_OR_RETURN(marked.put_marks, MarkFromNowOn(batch));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> lost, FindLost(marked));
  return lost.empty() ? absl::OkStatus() : Refill(marked, lost, counted.items());
}

absl::Status BatchEngine::Refill(const ledger::Batch& batch, const std::vector<uint64_t>& lost,
                                 int64_t counted) {
  if (counted != counted_at_refill_) {
    fruitless_refills_ = 0;
    refill_at_ = -absl::InfiniteDuration();
  }
  const absl::Status vanish = absl::DataLossError(
      absl::StrCat("items of batch ", number_, " vanish from the queue: ", lost.size(),
                   " are missing after ", fruitless_refills_, " times of putting them again"));
  const bool has_problem = fruitless_refills_ >= kMaxFruitlessRefills;
  const absl::Duration now = tools_.stores.clock->Monotonic();
  if (now >= refill_at_) {
    MUSTER_RETURN_IF_ERROR(RestoreJob(batch));
    MUSTER_RETURN_IF_ERROR(enqueuer_->Refill(number_, lost));
    counted_at_refill_ = counted;
    refill_at_ =
        now + base::ExponentialBackoff(++fruitless_refills_, kMinRefillPause, kMaxRefillPause);
  }
  return has_problem ? vanish : absl::OkStatus();
}

absl::Status BatchEngine::DeleteBlobs(const ledger::Batch& batch) {
  return DeleteNeedlessBlobs(tools_.stores.ledger, tools_.report_client, tools_.stores.blobs,
                             batch);
}

}  // namespace muster::initiator::batch
