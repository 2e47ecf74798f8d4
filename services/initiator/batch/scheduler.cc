// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/scheduler.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <variant>

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
// A sweep that is so late goes before the work on batches, of which there may always be some.
constexpr absl::Duration kLateSweep = absl::Seconds(10);
// Many removals go in small steps, which leave the stores to the work in between.
constexpr size_t kSweptAtATime = 20;
constexpr absl::Duration kSweepPause = absl::Milliseconds(20);
// Between two tries to claim lost request ids: clients ask again at once, and may ask another
// initiator.
constexpr absl::Duration kRestorePause = absl::Milliseconds(100);

// Blobs without an owner are rare, and cost only room. A mesh that restarts often begins no pass
// each time.
constexpr absl::Duration kFirstBlobPass = absl::Hours(1);
constexpr absl::Duration kBlobPassInterval = absl::Hours(24);
// A page is read by about a call for each blob.
constexpr size_t kBlobsAtATime = 100;

EngineDependencies With(EngineDependencies tools, base::WorkerPool* registrations,
                        std::function<void(uint64_t)> on_turn) {
  tools.registrations = registrations;
  tools.on_turn = std::move(on_turn);
  return tools;
}

// As BatchRemover::Dependencies::keep_for_redrive.
std::function<absl::Status(const ledger::Batch&, uint64_t)> KeeperOf(
    const EngineDependencies& tools) {
  if (tools.item_content == nullptr) return nullptr;
  return [content = tools.item_content, ledger = tools.stores.ledger](const ledger::Batch& batch,
                                                                      uint64_t index) {
    return retention::KeepForRedrive(ledger, content, batch, index);
  };
}

// As BatchRemover::Dependencies::drop_poison.
std::function<absl::Status(const ledger::Batch&, std::set<uint64_t>)> DropperOf(
    const EngineDependencies& tools) {
  return [queues = tools.stores.queues, account = tools.options.account](const ledger::Batch& batch,
                                                                         std::set<uint64_t> items) {
    return retention::DropPoison(queues, account, batch, std::move(items));
  };
}

}  // namespace

BatchScheduler::BatchScheduler(const EngineDependencies& tools, SchedulerOptions options)
    : options_(options),
      registrations_(options.threads),
      tools_(With(tools, &registrations_, [this](uint64_t batch) { Advance(batch); })),
      job_queues_(tools.stores.queues, tools.options.account, tools.stores.clock),
      remover_({tools.stores.ledger, tools.report_client, tools.stores.blobs, tools.content,
                tools.stores.clock, tools.release_request, KeeperOf(tools), tools.settle_request,
                DropperOf(tools)}),
      deleted_jobs_({tools.jobs, tools.stores.queues, tools.stores.ledger,
                     [this](const std::string& job) { job_queues_.Forget(job); },
                     tools.stores.clock, tools.records, tools.find_open_elsewhere},
                    tools.options.account),
      deleted_jobs_at_(tools.stores.clock->Monotonic() + kSweepInterval),
      blob_sweep_({tools.stores.ledger, tools.report_client, tools.stores.blobs, tools.stores.clock,
                   tools.find_elsewhere}),
      blob_pass_at_(tools.stores.clock->Monotonic() + kFirstBlobPass),
      stopped_uploads_(options.uploads, tools.stores.clock),
      cancel_acks_(tools.stores.clock) {}

BatchScheduler::~BatchScheduler() { Stop(); }

absl::Status BatchScheduler::Start() {
  MUSTER_ASSIGN_OR_RETURN(
      subscription_, tools_.stores.bus->Subscribe([this](const auto& event) { OnEvent(event); }));
  RestoreRequestsNow();
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
    if (batch.ok()) NoteStopped(*batch);
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
  stopped_uploads_.Remove(batch);
}

void BatchScheduler::NoteSenderGone(uint64_t batch) {
  {
    base::MutexLock lock(&mu_);
    const auto entry = entries_.find(batch);
    if (entry == entries_.end() || entry->second.senders == 0)
      return;  // the batch has ended meanwhile
    entry->second.left_at = tools_.stores.clock->Monotonic();
    --entry->second.senders;
    AnnounceLocked();
    if (entry->second.senders > 0) return;
  }
  const absl::StatusOr<ledger::Batch> left = tools_.stores.ledger->Get(batch);
  if (left.ok()) NoteStopped(*left);
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

void BatchScheduler::RestoreRequests() {
  base::MutexLock lock(&mu_);
  restore_at_ = tools_.stores.clock->Monotonic();
  due_changed_.NotifyAll();
}

void BatchScheduler::RestoreRequestsNow() {
  if (!tools_.restore_requests) return;
  const absl::Status restored = tools_.restore_requests();
  base::MutexLock lock(&mu_);
  if (!restored.ok()) {
    // Once for all tries: a store that is made anew, or away, takes none for a while.
    if (!restore_failed_) {
      base::Log(base::kWarning, "request ids whose claims were lost may begin batches elsewhere",
                {{"why", restored.ToString()}});
    }
    restore_at_ = std::min(restore_at_, tools_.stores.clock->Monotonic() + kRestorePause);
    due_changed_.NotifyAll();
  }
  restore_failed_ = !restored.ok();
}

void BatchScheduler::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration now = tools_.stores.clock->Monotonic();
    if (restore_at_ <= now) {
      restore_at_ = absl::InfiniteDuration();
      mu_.Unlock();
      RestoreRequestsNow();
      mu_.Lock();
      continue;
    }
    const absl::Duration due = due_.empty() ? absl::InfiniteDuration() : due_.begin()->first;
    if (due <= now && now < sweep_at_ + kLateSweep) {
      ProcessDue(due_.begin()->second);
    } else if (sweep_at_ <= now) {
      sweep_at_ = absl::InfiniteDuration();  // one thread sweeps at a time
      mu_.Unlock();
      const absl::Duration pause = Sweep();
      mu_.Lock();
      sweep_at_ = tools_.stores.clock->Monotonic() + pause;
      due_changed_.NotifyOne();
    } else {
      tools_.stores.clock->WaitUntil(&due_changed_, &mu_, std::min({due, sweep_at_, restore_at_}));
    }
  }
}

absl::Duration BatchScheduler::Sweep() {
  const absl::StatusOr<size_t> removed = remover_.RemoveDue(kSweptAtATime);
  base::LogUnlessOk(base::kWarning, "what batches have left stays for now", removed.status());
  if (const absl::Duration now = tools_.stores.clock->Monotonic(); deleted_jobs_at_ <= now) {
    deleted_jobs_at_ = now + kSweepInterval;
    base::LogUnlessOk(base::kWarning, "what deleted jobs have left stays for now",
                      deleted_jobs_.Sweep());
  }
  const bool more_uploads = ExpireUploads();
  const bool more_blobs = SweepBlobs();
  const bool more = more_uploads || more_blobs || (removed.ok() && *removed > 0);
  return more ? kSweepPause : kSweepInterval;
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

  // A batch that waits for content steps again as soon as more arrives, and one that is held back
  // as soon as there is room: neither should wait for the report's answer.
  const bool waits_to_put =
      step.ok() && (*step == StepResult::kNeedsContent || *step == StepResult::kHeldBack);
  // Of a batch that is done, this was the last step.
  const bool is_done = step.ok() && *step == StepResult::kDone;
  if (!is_done && (entry.ask_at <= now || !waits_to_put)) AskLocked(batch, &entry);
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
  entry->is_held_back = step.ok() && *step == StepResult::kHeldBack;
  if (!step.ok()) {
    NoteProblemLocked(batch, entry, step.status());
    return;
  }
  entry->failures = 0;
  entry->problem = absl::OkStatus();
  if (entry->is_held_back) {
    entry->problem = absl::ResourceExhaustedError(entry->work->hold().why);
  }
  // step_at is finite again if Advance asked for another step meanwhile.
  const bool again = entry->step_at != absl::InfiniteDuration();
  if (*step == StepResult::kDone && !again) {
    entries_.erase(batch);
    stopped_uploads_.Remove(batch);
    return;
  }
  absl::Duration step_at = entry->step_at;
  if (*step == StepResult::kNeedsResults || entry->is_held_back) {
    step_at = std::min(step_at, tools_.stores.clock->Monotonic() + CheckIntervalLocked());
  }
  if (entry->is_held_back) step_at = std::min(step_at, entry->work->hold().again_at);
  ScheduleLocked(batch, entry, step_at, entry->ask_at);
}

void BatchScheduler::NoteProblemLocked(uint64_t batch, Entry* entry, const absl::Status& problem) {
  if (stopping_) return;
  // Logs each problem once, even if it repeats; and once that a batch waits for those before it,
  // not for each of them: of a thousand batches that wait, that would be half a million lines.
  const bool waits_on = AwaitsTurn(problem) && AwaitsTurn(entry->problem);
  if (entry->problem != problem && !waits_on) {
    base::Log(
        base::kWarning, "a batch cannot go on for now",
        {{"batch", batch}, {"why", problem.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
  }
  entry->problem = problem;
  ++entry->failures;
  const absl::Duration later =
      tools_.stores.clock->Monotonic() +
      base::ExponentialBackoff(entry->failures, kMinPatience, kMaxPatience);
  ScheduleLocked(batch, entry, std::min(entry->step_at, later), entry->ask_at);
}

}  // namespace muster::initiator::batch
