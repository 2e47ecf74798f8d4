// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller_supervisor.h"

#include <algorithm>

#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"

namespace muster::controller {
namespace {

// From the end of a controller to its replacement; doubles while controllers end early.
constexpr absl::Duration kMinPatience = absl::Milliseconds(100);
constexpr absl::Duration kMaxPatience = absl::Seconds(5);
// A controller that ran for so long did not end early.
constexpr absl::Duration kProven = absl::Minutes(1);

}  // namespace

ControllerSupervisor::ControllerSupervisor(std::string account, Options options, Events events,
                                           Dependencies dependencies, IsNeeded is_needed)
    : account_(std::move(account)),
      options_(std::move(options)),
      events_(std::move(events)),
      deps_(dependencies),
      is_needed_(std::move(is_needed)),
      thread_([this] { Run(); }) {}

ControllerSupervisor::~ControllerSupervisor() { Stop(); }

// Starts the controller without the lock: it asks the queue store, which may be slow to answer for
// one job's queue, and batches of other jobs must not wait for that.
absl::Status ControllerSupervisor::Begin(const std::string& job) {
  const absl::Status stopping = absl::UnavailableError("this controller is about to stop");
  base::MutexLock lock(&mu_);
  for (auto begun = jobs_.find(job); begun != jobs_.end(); begun = jobs_.find(job)) {
    const absl::Status& not_started = begun->second.not_started;
    if (stopping_) return stopping;
    if (!begun->second.starting) {
      begun->second.begun_again = true;
      return base::MismatchOf(not_started).has_value() ? not_started : absl::OkStatus();
    }
    changed_.Wait(&mu_);
  }
  if (stopping_) return stopping;
  Counting& counting = jobs_[job];  // stays: Run leaves alone what starts
  counting.starting = true;
  counting.begun = deps_.clock->Monotonic();
  mu_.Unlock();
  absl::StatusOr<std::unique_ptr<Controller>> controller = Start(job);
  mu_.Lock();
  counting.starting = false;
  changed_.NotifyAll();
  if (controller.ok()) {
    counting.controller = *std::move(controller);
    return absl::OkStatus();
  }
  jobs_.erase(job);
  return controller.status();
}

absl::Status ControllerSupervisor::Begin(const std::string& job, uint64_t batch) {
  MUSTER_RETURN_IF_ERROR(Begin(job));
  base::MutexLock lock(&mu_);
  const auto begun = jobs_.find(job);
  if (begun != jobs_.end() && begun->second.controller != nullptr) {
    begun->second.controller->Expect(batch);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Controller>> ControllerSupervisor::Start(const std::string& job) {
  Options options = options_;
  options.partitions = {item::OutputQueue(account_, job, 0)};
  Events events;
  events.on_progress = [this, job](const report::Progress& progress) { OnProgress(job, progress); };
  events.on_error = [this, job](const absl::Status& why) { OnError(job, why); };
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Controller> controller,
                          Controller::Create(std::move(options), std::move(events), deps_));
  MUSTER_RETURN_IF_ERROR(controller->Start());
  return controller;
}

absl::Status ControllerSupervisor::CheckCompletion(uint64_t batch) {
  const auto job = [&]() -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, deps_.report->Read());
    MUSTER_ASSIGN_OR_RETURN(const report::Progress progress, reader->GetProgress(batch));
    return progress.job;
  }();
  if (!job.ok()) return absl::OkStatus();  // the caller asks again
  base::MutexLock lock(&mu_);
  const auto counting = jobs_.find(*job);
  if (counting == jobs_.end() || counting->second.controller == nullptr) return absl::OkStatus();
  return counting->second.controller->CheckCompletion(batch);
}

// Runs on the controller's own thread, so it cannot destroy the controller; it only marks it for
// Run.
void ControllerSupervisor::OnError(const std::string& job, const absl::Status& why) {
  base::MutexLock lock(&mu_);
  Counting& counting = jobs_[job];
  const absl::Duration now = deps_.clock->Monotonic();
  counting.failures = now - counting.begun > kProven ? 1 : counting.failures + 1;
  counting.failed = true;
  const absl::Duration wait =
      base::ExponentialBackoff(counting.failures, kMinPatience, kMaxPatience);
  counting.again_at = now + wait;
  changed_.NotifyAll();
  if (absl::IsNotFound(why)) return;  // perhaps the job is deleted: the restart says what happened
  counting.trouble = why;
  counting.was_cut_short = true;
  base::Log(base::kError, "counting a job's results was cut short; it is tried again",
            {{"job", job}, {"why", why.ToString()}, {"again_after", absl::FormatDuration(wait)}});
}

void ControllerSupervisor::OnProgress(const std::string& job, const report::Progress& progress) {
  bool is_counted_again = false;
  {
    base::MutexLock lock(&mu_);
    if (const auto counting = jobs_.find(job); counting != jobs_.end()) {
      counting->second.trouble = absl::OkStatus();
      is_counted_again = std::exchange(counting->second.was_cut_short, false);
    }
  }
  // Not sooner: each try may fail as the one before it.
  if (is_counted_again) {
    base::Log(base::kInfo, "a job's results are counted again", {{"job", job}});
  }
  if (events_.on_progress) events_.on_progress(progress);
}

std::map<std::string, absl::Status> ControllerSupervisor::Troubles(size_t most) const {
  const absl::Duration now = deps_.clock->Monotonic();
  std::map<std::string, absl::Status> troubles;
  base::MutexLock lock(&mu_);
  for (const auto& [job, counting] : jobs_) {
    if (troubles.size() >= most) break;
    const absl::Status& why = counting.not_started.ok() ? counting.trouble : counting.not_started;
    const bool runs = !counting.failed && counting.controller != nullptr;
    if (why.ok() || (runs && now - counting.begun > kProven)) continue;
    troubles[job] = why;
  }
  return troubles;
}

std::pair<absl::Duration, std::string> ControllerSupervisor::NextLocked() const {
  std::pair<absl::Duration, std::string> next = {absl::InfiniteDuration(), ""};
  for (const auto& [job, counting] : jobs_) {
    if (counting.starting || !counting.failed) continue;
    if (counting.again_at < next.first) next = {counting.again_at, job};
  }
  return next;
}

void ControllerSupervisor::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const auto [due, job] = NextLocked();
    if (due > deps_.clock->Monotonic()) {
      deps_.clock->WaitUntil(&changed_, &mu_, due);
      continue;
    }
    RestartLocked(job);
  }
}

void ControllerSupervisor::RestartLocked(const std::string& job) {
  std::unique_ptr<Controller> old = std::move(jobs_[job].controller);
  jobs_[job].failed = false;  // reset first: the new controller may fail before it is stored here
  jobs_[job].begun_again = false;
  mu_.Unlock();
  old.reset();  // joins its thread, which may take mu_
  const bool needed = is_needed_ == nullptr || is_needed_(job);
  absl::StatusOr<std::unique_ptr<Controller>> controller = nullptr;
  if (needed) controller = Start(job);
  mu_.Lock();
  Counting& counting = jobs_[job];
  counting.begun = deps_.clock->Monotonic();
  if (!needed) {
    if (counting.begun_again) {  // the job is back
      counting.failed = true;
      counting.again_at = counting.begun;
      return;
    }
    jobs_.erase(job);
    return base::Log(base::kInfo, "a job was deleted; its results are not counted any more",
                     {{"job", job}});
  }
  const absl::Status before = std::exchange(counting.not_started, controller.status());
  if (controller.ok()) {
    counting.controller = *std::move(controller);
    if (counting.was_cut_short) return;  // OnProgress tells it
    return base::Log(base::kInfo, "a job's results are counted again", {{"job", job}});
  }
  if (controller.status() != before) {
    base::Log(base::kWarning, "a job's results cannot be counted yet; it is tried again",
              {{"job", job}, {"why", controller.status().ToString()}});
  }
  counting.was_cut_short = true;
  counting.failed = true;
  ++counting.failures;
  counting.again_at =
      counting.begun + base::ExponentialBackoff(counting.failures, kMinPatience, kMaxPatience);
}

bool ControllerSupervisor::OneStartsLocked() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& one) { return one.second.starting; });
}

void ControllerSupervisor::Stop() {
  std::vector<std::unique_ptr<Controller>> controllers;
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  {
    base::MutexLock lock(&mu_);
    while (OneStartsLocked()) changed_.Wait(&mu_);
    for (auto& [job, counting] : jobs_) controllers.push_back(std::move(counting.controller));
  }
  controllers.clear();  // outside the lock: their last events take it
}

}  // namespace muster::controller
