// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor_service.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/handler/health_troubles.h"

namespace muster::processor {

namespace {

// The wait after a look in which a store did not answer; doubles with each further one.
constexpr absl::Duration kMinPatience = absl::Milliseconds(100);

void WarnIfCutOff(const absl::Status& stopped) {
  base::LogUnlessOk(base::kWarning, "some work was cut off when its workers stopped", stopped);
}

ServiceOptions Named(ServiceOptions options) {
  options.handlers.instance = options.instance;
  options.handlers.on_refused = nullptr;
  return options;
}

}  // namespace

ProcessorService::ProcessorService(const handler::HandlerRegistry* handlers, ServiceOptions options,
                                   base::Clock* clock)
    : handlers_(handlers),
      options_(Named(std::move(options))),
      clock_(clock),
      slow_items_(clock),
      parked_(!options_.standby.empty()) {}

ProcessorService::~ProcessorService() {
  Stop(absl::ZeroDuration());
  Close();
}

absl::Status ProcessorService::Start(const Dependencies& dependencies, job::JobRegistry* jobs) {
  MUSTER_CHECK(!thread_.joinable(), options_.instance, " is started twice");
  deps_ = dependencies;
  deps_.slow_items = &slow_items_;
  jobs_ = jobs;
  revisions_ = std::make_unique<RevisionCache>(jobs, handlers_, deps_.blobs, options_.handlers,
                                               clock_, deps_.slow_items, deps_.metrics);
  pool_metrics_ = std::make_unique<PoolMetrics>(this, deps_.metrics);
  // Subscribe before the first look, so that no change falls between the two.
  MUSTER_ASSIGN_OR_RETURN(subscription_,
                          deps_.bus->Subscribe([this](const auto& event) { OnEvent(event); }));
  if (const absl::Status looked = Look(); !looked.ok()) {
    subscription_.reset();
    return looked;
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ProcessorService::OnEvent(const bus::InterRoleCommunicationEvent& event) {
  const auto* const cancelled = std::get_if<bus::BatchCancelledEvent>(&event.payload);
  const bool gives_up = cancelled != nullptr && deps_.cancelled != nullptr;
  if (gives_up) deps_.cancelled->Note(cancelled->batch);
  const bool look = std::holds_alternative<bus::JobChangedEvent>(event.payload);
  if (!gives_up && !look) return;
  base::MutexLock lock(&mu_);
  look_ |= look;
  if (gives_up) cancelled_.push_back(cancelled->batch);
  changed_.NotifyAll();
}

void ProcessorService::Run() {
  absl::Duration due = clock_->Monotonic() + NextLookIn();
  while (const std::optional<News> news = AwaitNews(due)) {
    for (const uint64_t batch : news->cancelled) GiveUp(batch);
    for (const Refusal& refusal : news->refused) StopRefused(refusal);
    if (!news->look) continue;
    if (const absl::Status looked = Look(); !looked.ok()) {
      base::Log(base::kWarning, "the jobs cannot be looked at; work goes on for those known",
                {{"why", looked.ToString()}});
      look_soon_ = true;
    }
    due = clock_->Monotonic() + NextLookIn();
  }
}

std::optional<ProcessorService::News> ProcessorService::AwaitNews(absl::Duration due) {
  News news;
  base::MutexLock lock(&mu_);
  while (!stopping_ && !look_ && cancelled_.empty() && refused_.empty()) {
    if (clock_->WaitUntil(&changed_, &mu_, due)) break;
  }
  if (stopping_) return std::nullopt;
  news.look = std::exchange(look_, false) || clock_->Monotonic() >= due;
  news.cancelled.swap(cancelled_);
  news.refused.swap(refused_);
  return news;
}

absl::Duration ProcessorService::NextLookIn() {
  hasty_looks_ = std::exchange(look_soon_, false) ? hasty_looks_ + 1 : 0;
  if (hasty_looks_ == 0) return options_.look_interval;
  return base::ExponentialBackoff(hasty_looks_, kMinPatience, options_.look_interval);
}

void ProcessorService::GiveUp(uint64_t batch) {
  deps_.cancelled->StopRunning(batch);
  base::LogUnlessOk(base::kWarning, "a cancellation was not acknowledged",
                    deps_.bus->Publish({options_.instance, bus::CancelAcknowledgedEvent{batch}}),
                    {{"batch", batch}});
}

// Runs on the service's thread, not on the refused worker's: stopping the listener waits for that
// worker. A refusal of an earlier revision (RevisionCache) stops nothing: the job's current
// revision may suit the handler.
void ProcessorService::StopRefused(const Refusal& refusal) {
  const ServedPtr served = refusal.served.lock();
  if (served == nullptr || ServedAs(served->as_of.name) != served) return;
  {
    base::MutexLock lock(&mu_);
    if (!IsWantedLocked(served->as_of.name)) return;
  }
  job_troubles_.Report(served->as_of.name, {base::InWords(refusal.why), served->as_of});
  Forget(served);
  DrainAside(served);
}

// Best effort: without it workers only waste work on cancelled and suspended batches.
void ProcessorService::RefreshCancelled() {
  if (deps_.cancelled != nullptr) {
    base::LogUnlessOk(base::kWarning, "items of cancelled batches may be worked on in vain",
                      deps_.cancelled->Refresh());
  }
  if (deps_.suspended != nullptr) {
    base::LogUnlessOk(base::kWarning, "items that no worker fits are given back again and again",
                      deps_.suspended->Refresh());
  }
}

absl::Status ProcessorService::Look() {
  ReapDrained();
  RefreshCancelled();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobSummary> jobs, jobs_->Summaries());
  std::set<std::string> gone;
  for (const JobListener& served : Listeners()) gone.insert(served.job);
  for (const job::JobSummary& job : jobs) {
    gone.erase(job.name);
    if (ThreadsFor(job.name) > 0) Serve(job);
  }
  for (const std::string& job : gone) Drop(job);
  job_troubles_.KeepOnly(jobs);
  return absl::OkStatus();
}

bool ProcessorService::IsWantedLocked(const std::string& job) const {
  return !stopping_ && !all_retired_ && !retired_.contains(job);
}

ProcessorService::ServedPtr ProcessorService::ServedAs(const std::string& job) {
  base::MutexLock lock(&mu_);
  const auto served = served_.find(job);
  return served == served_.end() ? nullptr : served->second;
}

// What is made from now on finds the service not parked, and what was made before is in served_. So
// each is started once.
void ProcessorService::Unpark() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    if (stopping_ || !std::exchange(parked_, false)) return;
    for (const auto& [job, one] : served_) {
      if (IsWantedLocked(job)) served.emplace(job, one);
    }
  }
  bool look = false;
  for (const auto& [job, one] : served) look |= base::IsTransient(Begin(one, "works for a job"));
  if (!look) return;
  base::MutexLock lock(&mu_);
  look_ = true;
  changed_.NotifyAll();
}

void ProcessorService::NotePause(absl::string_view job, bool for_lack_of_work) {
  base::MutexLock lock(&mu_);
  if (for_lack_of_work) {
    lacking_work_.emplace(job);
  } else if (const auto found = lacking_work_.find(job); found != lacking_work_.end()) {
    lacking_work_.erase(found);
  }
}

bool ProcessorService::LacksWork(absl::string_view job) {
  base::MutexLock lock(&mu_);
  return lacking_work_.contains(job);
}

std::string ProcessorService::ParkedFor() {
  base::MutexLock lock(&mu_);
  return parked_ ? options_.standby : "";
}

void ProcessorService::Forget(const ServedPtr& served) {
  base::MutexLock lock(&mu_);
  const auto place = served_.find(served->as_of.name);
  if (place == served_.end() || place->second != served) return;
  lacking_work_.erase(place->first);
  served_.erase(place);
}

void ProcessorService::Drop(const std::string& job) {
  const ServedPtr served = ServedAs(job);
  if (served == nullptr) return;
  {
    base::MutexLock lock(&mu_);
    if (stopping_) return;
    served_.erase(job);
  }
  base::Log(base::kInfo, "a job was deleted; nothing works for it any more", {{"job", job}});
  DrainAside(served);
}

void ProcessorService::DrainAside(ServedPtr served) {
  served->draining.request_stop();
  drains_.push_back(std::async(std::launch::async,
                               [this, served = std::move(served), grace = options_.drain_grace] {
                                 served->AwaitWarm();
                                 WarnIfCutOff(served->processor->Stop(grace));
                                 pool_metrics_->NoteEnded(ListenerOf(served));
                               }));
}

void ProcessorService::ReapDrained() {
  drains_.remove_if([](const std::future<void>& drain) {
    return drain.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

void ProcessorService::Stop(absl::Duration grace) {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  subscription_.reset();
  if (thread_.joinable()) thread_.join();
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served = served_;
  }
  for (const auto& [job, one] : served) one->draining.request_stop();
  for (const auto& [job, one] : served) one->AwaitWarm();
  WarnIfCutOff(StopAll(Listeners(), grace));
  drains_.clear();  // waits for each drain to end
}

void ProcessorService::Close() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served.swap(served_);
  }
  served.clear();
  pool_metrics_.reset();
  revisions_.reset();
}

JobListener ProcessorService::ListenerOf(const ServedPtr& served) {
  return {served->as_of.name,
          {served, &served->processor->listener()},
          served->processor->handler_version(),
          served->processor->transactions_processed(),
          served->processor->starting()};
}

std::vector<JobListener> ProcessorService::Listeners() {
  base::MutexLock lock(&mu_);
  std::vector<JobListener> listeners;
  listeners.reserve(served_.size());
  for (const auto& [job, served] : served_) listeners.push_back(ListenerOf(served));
  return listeners;
}

// A refusal ends once the service has called the handler again and it is ready.
std::map<std::string, std::string> ProcessorService::OpenTroubles() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served = served_;
  }
  for (const auto& [job, one] : served) {
    if (one->health->works()) job_troubles_.IsAccepted(job);
  }
  std::map<std::string, std::string> open_troubles = job_troubles_.OpenTroubles();
  for (const auto& [job, one] : served) {
    if (std::string why = one->health->why(); !why.empty())
      open_troubles.emplace(job, std::move(why));
  }
  return open_troubles;
}

void ProcessorService::Retire(absl::string_view job) {
  base::MutexLock lock(&mu_);
  if (job.empty()) {
    all_retired_ = true;
  } else {
    retired_.emplace(job);
  }
}

}  // namespace muster::processor
