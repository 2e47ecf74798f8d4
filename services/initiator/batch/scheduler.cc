#include "services/initiator/batch/scheduler.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "services/initiator/batch/status.h"

namespace muster::initiator::batch {

namespace {

// The wait after a failed step; doubles with each further failure.
constexpr absl::Duration kMinPatience = absl::Milliseconds(100);
constexpr absl::Duration kMaxPatience = absl::Seconds(10);

// A batch with news goes before the checks that became due within this time. Older ones go first,
// so that no stream of news keeps a batch from being checked.
constexpr absl::Duration kHeadStart = absl::Minutes(1);

// Removals are due some hours or days after a batch's end: a minute more does not matter.
constexpr absl::Duration kSweepInterval = absl::Minutes(1);
// Many removals go in small steps, which leave the stores to the work in between.
constexpr size_t kSweptAtATime = 20;
constexpr absl::Duration kSweepPause = absl::Milliseconds(100);

// Blobs without an owner are rare, and cost only room. A mesh that restarts often begins no pass
// each time.
constexpr absl::Duration kFirstBlobPass = absl::Hours(1);
constexpr absl::Duration kBlobPassInterval = absl::Hours(24);
// A page is read by about a call for each blob.
constexpr size_t kBlobsAtATime = 100;

EngineDependencies With(EngineDependencies tools, base::WorkerPool* registrations) {
  tools.registrations = registrations;
  return tools;
}

}  // namespace

BatchScheduler::BatchScheduler(const EngineDependencies& tools, SchedulerOptions options)
    : options_(options),
      registrations_(options.threads),
      tools_(With(tools, &registrations_)),
      job_queues_(tools.stores.queues, tools.options.account, tools.stores.clock),
      remover_({tools.stores.ledger, tools.report_client, tools.stores.blobs, tools.content,
                tools.stores.clock, tools.release_request}),
      blob_sweep_({tools.stores.ledger, tools.report_client, tools.stores.blobs, tools.stores.clock,
                   tools.find_elsewhere}),
      blob_pass_at_(tools.stores.clock->Monotonic() + kFirstBlobPass),
      cancel_acks_(tools.stores.clock) {}

BatchScheduler::~BatchScheduler() { Stop(); }

absl::Status BatchScheduler::Start() {
  MUSTER_ASSIGN_OR_RETURN(
      subscription_, tools_.stores.bus->Subscribe([this](const auto& event) { OnEvent(event); }));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, tools_.stores.ledger->ListOpen());
  if (tools_.suspended != nullptr) {
    // Its engines look for their own batches in the record of an earlier process.
    base::LogUnlessOk(base::kWarning, "suspended batches are not known yet",
                      tools_.suspended->Refresh());
  }
  absl::Duration check_after = absl::ZeroDuration();
  for (const uint64_t number : open) {
    const absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(number);
    const bool waits_for_results = batch.ok() && batch->state == ledger::BatchState::kSealed &&
                                   batch->enqueued_items == batch->items;
    if (waits_for_results) check_after += options_.check_spacing;
    Advance(number, waits_for_results ? check_after : absl::ZeroDuration());
  }
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
  return absl::OkStatus();
}

void BatchScheduler::Stop() {
  subscription_.reset();
  stop_.request_stop();
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    due_changed_.NotifyAll();
    news_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  threads_.clear();
}

void BatchScheduler::Advance(uint64_t batch, absl::Duration after) {
  base::MutexLock lock(&mu_);
  AdvanceLocked(batch, after);
}

void BatchScheduler::NoteSender(uint64_t batch) {
  base::MutexLock lock(&mu_);
  Entry& entry = AdvanceLocked(batch, absl::ZeroDuration());
  MUSTER_CHECK(entry.senders >= 0, "batch ", batch, ", senders ", entry.senders);
  ++entry.senders;
}

void BatchScheduler::NoteSenderGone(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto entry = entries_.find(batch);
  if (entry == entries_.end() || entry->second.senders == 0)
    return;  // the batch has ended meanwhile
  --entry->second.senders;
  entry->second.left_at = tools_.stores.clock->Monotonic();
  AnnounceLocked();
}

BatchScheduler::Entry& BatchScheduler::AdvanceLocked(uint64_t batch, absl::Duration after) {
  Entry& entry = entries_[batch];
  const absl::Duration now = tools_.stores.clock->Monotonic();
  const bool is_new = entry.work == nullptr;
  if (is_new) {
    entry.work = std::make_shared<BatchEngine>(batch, tools_, &job_queues_);
    entry.left_at = now;
  }
  const absl::Duration step_at = after > absl::ZeroDuration() ? now + after : now - kHeadStart;
  ScheduleLocked(batch, &entry, is_new ? step_at : std::min(step_at, entry.step_at), entry.ask_at);
  AnnounceLocked();
  return entry;
}

// The share of the content that has arrived so far; the full size is unknown until then.
double BatchScheduler::SplitShare(const ledger::Batch& batch) {
  if (batch.state != ledger::BatchState::kOpen) return 1;
  if (!tools_.content->Stores(batch)) return 0;
  const uint64_t arrived =
      tools_.content->DurableBytes(batch.number).value_or(batch.content.size());
  if (arrived == 0) return 0;
  return static_cast<double>(batch.source_bytes) / static_cast<double>(arrived);
}

// A client that was interrupted does not resume by itself, and the batch would wait for ever: the
// error tells the user what to do.
absl::Status BatchScheduler::CheckSender(const ledger::Batch& batch) {
  if (batch.state != ledger::BatchState::kOpen || !batch.content.empty()) return absl::OkStatus();
  if (!tools_.content->Stores(batch)) return absl::OkStatus();
  {
    base::MutexLock lock(&mu_);
    const auto entry = entries_.find(batch.number);
    if (entry == entries_.end() || entry->second.senders > 0) return absl::OkStatus();
    const absl::Duration alone = tools_.stores.clock->Monotonic() - entry->second.left_at;
    if (alone < options_.sender_grace) return absl::OkStatus();
  }
  if (tools_.content->IsSealed(batch.number)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the rest of its upload is missing: submit it again with --request-id ",
                   batch.request_id, ", or `muster batch cancel ", batch.number, "`"));
}

bool BatchScheduler::StatusHere(BatchStatus* batch_status) {
  const ledger::Batch& batch = batch_status->batch;
  batch_status->split_share = SplitShare(batch);
  const absl::Status unsent = CheckSender(batch);
  // A batch that has ended waits for nothing, even if its blobs cannot be deleted yet.
  const bool over = IsOver(batch.state);
  base::MutexLock lock(&mu_);
  if (const auto entry = entries_.find(batch.number); entry != entries_.end()) {
    batch_status->split = entry->second.work->split_progress();
    if (!over) {
      batch_status->problem = entry->second.problem;
      batch_status->problem.Update(unsent);
    }
    if (!over && entry->second.counted.has_value()) {
      batch_status->counted = *entry->second.counted;
      return true;
    }
  }
  // While no item is put, none is counted: answer without asking the report, so that a submission
  // does not wait for it. What the report has under a disowned number is not this batch's.
  return batch.disowned || (!over && batch.enqueued_items == 0);
}

absl::StatusOr<BatchStatus> BatchScheduler::Get(uint64_t number) {
  BatchStatus batch_status;
  MUSTER_ASSIGN_OR_RETURN(batch_status.batch, tools_.stores.ledger->Get(number));
  if (StatusHere(&batch_status)) return batch_status;
  absl::StatusOr<report::Progress> counted = tools_.report_client->GetProgress(number);
  if (counted.ok()) {
    batch_status.counted = *std::move(counted);
  } else if (absl::IsNotFound(counted.status()) &&
             batch_status.batch.state == ledger::BatchState::kComplete) {
    return absl::UnavailableError(
        absl::StrCat("the report does not know batch ", number, ", which is complete"));
  } else if (!absl::IsNotFound(counted.status()) && IsOver(batch_status.batch.state)) {
    return counted.status();
  }
  return batch_status;
}

absl::StatusOr<std::vector<BatchStatus>> BatchScheduler::StatusesOf(
    std::vector<ledger::Batch> batches) {
  std::vector<BatchStatus> statuses;
  std::vector<uint64_t> to_ask;
  bool must_know = false;
  for (ledger::Batch& batch : batches) {
    BatchStatus& batch_status = statuses.emplace_back();
    batch_status.batch = std::move(batch);
    if (StatusHere(&batch_status)) continue;
    to_ask.push_back(batch_status.batch.number);
    must_know = must_know || IsOver(batch_status.batch.state);
  }
  if (to_ask.empty()) return statuses;
  auto counted = tools_.report_client->ListProgress(to_ask);
  if (!counted.ok() && must_know) return counted.status();
  if (!counted.ok()) return statuses;
  for (BatchStatus& batch_status : statuses) {
    const auto of_batch = counted->find(batch_status.batch.number);
    if (of_batch != counted->end()) {
      batch_status.counted = std::move(of_batch->second);
    } else if (batch_status.batch.state == ledger::BatchState::kComplete) {
      // One such batch must not hide the others.
      batch_status.problem = absl::UnavailableError("the report does not know the batch");
    }
  }
  return statuses;
}

absl::StatusOr<bool> BatchScheduler::IsCancelled(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, tools_.stores.ledger->Get(number));
  return batch.state == ledger::BatchState::kCancelled;
}

void BatchScheduler::AwaitNews(uint64_t* seen, absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  while (!stopping_ && news_count_ == *seen) {
    if (tools_.stores.clock->WaitUntil(&news_, &mu_, deadline)) break;
  }
  *seen = news_count_;
}

void BatchScheduler::Announce() {
  base::MutexLock lock(&mu_);
  AnnounceLocked();
}

void BatchScheduler::AnnounceLocked() {
  ++news_count_;
  news_.NotifyAll();
}

void BatchScheduler::OnEvent(const bus::InterRoleCommunicationEvent& event) {
  if (const auto* acknowledged = std::get_if<bus::CancelAcknowledgedEvent>(&event.payload)) {
    cancel_acks_.OnAcknowledged(acknowledged->batch, event.from);
  }
  const auto* counted = std::get_if<bus::BatchCountedEvent>(&event.payload);
  if (counted == nullptr) return;
  base::MutexLock lock(&mu_);
  const auto entry = entries_.find(counted->batch);
  if (entry == entries_.end()) return;  // another initiator's
  const absl::Duration at =
      std::max(tools_.stores.clock->Monotonic(), entry->second.asked + options_.progress_interval);
  ScheduleLocked(counted->batch, &entry->second, entry->second.step_at,
                 std::min(at, entry->second.ask_at));
}

void BatchScheduler::ScheduleLocked(uint64_t batch, Entry* entry, absl::Duration step_at,
                                    absl::Duration ask_at) {
  const size_t was_due = due_.erase({entry->due(), batch});
  MUSTER_CHECK(!entry->busy || was_due == 0, "batch ", batch, " is busy, and in due_ ", was_due,
               " times");
  entry->step_at = step_at;
  entry->ask_at = ask_at;
  if (entry->busy) return;  // the thread that works on it schedules it again
  due_.insert({entry->due(), batch});
  due_changed_.NotifyOne();
}

absl::Duration BatchScheduler::CheckIntervalLocked() const {
  return std::max(options_.loss_check_interval,
                  options_.check_spacing * static_cast<double>(entries_.size()));
}

std::optional<std::pair<absl::Duration, uint64_t>> BatchScheduler::NextLocked() const {
  if (due_.empty()) return std::nullopt;
  return *due_.begin();
}

void BatchScheduler::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration now = tools_.stores.clock->Monotonic();
    const auto next = NextLocked();
    const absl::Duration due = next.has_value() ? next->first : absl::InfiniteDuration();
    if (due <= now) {
      ProcessDue(next->second);
    } else if (sweep_at_ <= now) {
      sweep_at_ = absl::InfiniteDuration();  // one thread sweeps at a time
      mu_.Unlock();
      const absl::Duration pause = Sweep();
      mu_.Lock();
      sweep_at_ = tools_.stores.clock->Monotonic() + pause;
      due_changed_.NotifyOne();
    } else {
      tools_.stores.clock->WaitUntil(&due_changed_, &mu_, std::min(due, sweep_at_));
    }
  }
}

absl::Duration BatchScheduler::Sweep() {
  const absl::StatusOr<size_t> removed = remover_.RemoveDue(kSweptAtATime);
  base::LogUnlessOk(base::kWarning, "what batches have left stays for now", removed.status());
  const bool more_blobs = SweepBlobs();
  return more_blobs || (removed.ok() && *removed > 0) ? kSweepPause : kSweepInterval;
}

bool BatchScheduler::SweepBlobs() {
  if (tools_.stores.clock->Monotonic() < blob_pass_at_) return false;
  const absl::StatusOr<bool> done = blob_sweep_.Step(kBlobsAtATime);
  if (!done.ok()) {
    base::Log(base::kWarning, "a blob that may have no owner stays for now",
              {{"why", done.status().ToString()}});
    return false;  // on with the rest in a while
  }
  if (*done) blob_pass_at_ = tools_.stores.clock->Monotonic() + kBlobPassInterval;
  return !*done;
}

absl::Status BatchScheduler::Delete(uint64_t batch) {
  MUSTER_RETURN_IF_ERROR(remover_.Delete(batch));
  base::MutexLock lock(&mu_);
  AnnounceLocked();
  return absl::OkStatus();
}

void BatchScheduler::ProcessDue(uint64_t batch) {
  Entry& entry = entries_[batch];
  const absl::Duration now = tools_.stores.clock->Monotonic();
  const bool step_it = entry.step_at <= now;
  const size_t was_due = due_.erase({entry.due(), batch});
  MUSTER_CHECK(was_due == 1 && !entry.busy && entry.work != nullptr, "batch ", batch, ": in due_ ",
               was_due, " times, busy ", entry.busy);
  // This thread may have been the only one that waits for the next due batch; now it is busy, so
  // wake another one.
  if (!due_.empty()) due_changed_.NotifyOne();
  entry.busy = true;
  if (step_it) entry.step_at = absl::InfiniteDuration();
  const std::shared_ptr<BatchEngine> work = entry.work;

  mu_.Unlock();
  absl::StatusOr<StepResult> step = StepResult::kNeedsResults;
  if (step_it) step = work->Step(stop_.get_token());
  if (step.ok() && *step == StepResult::kRefused) {
    const absl::Status cancelled = CancelRefused(batch, work->refusal());
    if (!cancelled.ok()) step = cancelled;  // the next step refuses it again
  }
  if (step.ok() && *step == StepResult::kCancelled) {
    PublishCancellation(batch);
    step = StepResult::kDone;
  }
  if (step.ok() && *step == StepResult::kDisowned) {
    // Workers are not told: to them the number is the other batch's.
    if (tools_.on_number_taken) tools_.on_number_taken();
    RefuseContent(batch);
    step = StepResult::kDone;
  }
  mu_.Lock();

  // A batch that waits for content steps again as soon as more arrives, and should not wait for the
  // report's answer.
  const bool waits_for_content = step.ok() && *step == StepResult::kNeedsContent;
  if (entry.ask_at <= now || !waits_for_content) AskLocked(batch, &entry);
  entry.busy = false;
  if (step_it) {
    NoteStepLocked(batch, &entry, step);
  } else {
    ScheduleLocked(batch, &entry, entry.step_at, entry.ask_at);
  }
  AnnounceLocked();
}

void BatchScheduler::AskLocked(uint64_t batch, Entry* entry) {
  // The entry must outlive the question, during which mu_ is released.
  MUSTER_CHECK(entry->busy, "batch ", batch, " is asked about, and not busy");
  entry->ask_at = absl::InfiniteDuration();  // set before the question: an event that arrives
                                             // meanwhile asks again
  entry->asked = tools_.stores.clock->Monotonic();
  mu_.Unlock();
  absl::StatusOr<report::Progress> counted = tools_.report_client->GetProgress(batch);
  mu_.Lock();
  if (counted.ok()) entry->counted = *std::move(counted);
}

void BatchScheduler::NoteStepLocked(uint64_t batch, Entry* entry,
                                    const absl::StatusOr<StepResult>& step) {
  if (!step.ok()) {
    NoteProblemLocked(batch, entry, step.status());
    return;
  }
  entry->failures = 0;
  entry->problem = absl::OkStatus();
  // step_at is finite again if Advance asked for another step meanwhile.
  const bool again = entry->step_at != absl::InfiniteDuration();
  if (*step == StepResult::kDone && !again) {
    entries_.erase(batch);
    return;
  }
  absl::Duration step_at = entry->step_at;
  if (*step == StepResult::kNeedsResults) {
    step_at = std::min(step_at, tools_.stores.clock->Monotonic() + CheckIntervalLocked());
  }
  ScheduleLocked(batch, entry, step_at, entry->ask_at);
}

void BatchScheduler::NoteProblemLocked(uint64_t batch, Entry* entry, const absl::Status& problem) {
  if (stopping_) return;
  // Logs each problem once, even if it repeats.
  if (entry->problem != problem) {
    base::Log(base::kWarning, "a batch cannot go on for now",
              {{"batch", batch}, {"why", problem.ToString()}});
  }
  entry->problem = problem;
  ++entry->failures;
  const absl::Duration later =
      tools_.stores.clock->Monotonic() +
      base::ExponentialBackoff(entry->failures, kMinPatience, kMaxPatience);
  ScheduleLocked(batch, entry, std::min(entry->step_at, later), entry->ask_at);
}

}  // namespace muster::initiator::batch
