// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/wait_reasons.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/handler/health_troubles.h"
#include "muster/item/queue_names.h"
#include "muster/scaling/rules/rules.h"

namespace muster::initiator::api {
namespace {

// Heartbeats come every two seconds.
constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kAskEvery = absl::Seconds(5);

std::string Time(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

// "p-1", "p-1 and 4 more".
std::string AndMore(const std::string& first, size_t count) {
  return count <= 1 ? first : absl::StrCat(first, " and ", count - 1, " more");
}

}  // namespace

WorkView::WorkView(const std::vector<bus::RosterEntry>& processors, bool has_controller,
                   const std::vector<bus::RosterEntry>& controllers)
    : has_controller_(has_controller) {
  for (const bus::RosterEntry& entry : processors) {
    if (entry.leaving) continue;
    const v1::Heartbeat& heartbeat = entry.heartbeat;
    const std::string& instance = heartbeat.instance().instance();
    const bool is_parked =
        !heartbeat.standby().release().empty() && !heartbeat.standby().has_left();
    std::map<std::string, Processor> jobs;
    for (const v1::HandlerVersion& handler : heartbeat.instance().handlers()) {
      jobs[handler.job()].version = handler.version();
    }
    for (const v1::JobLoad& load : heartbeat.jobs()) {
      Processor& processor = jobs[load.job()];
      processor.trouble = load.trouble();
      processor.is_throttled = load.throttled() > 0 && load.items_per_second() == 0;
    }
    for (auto& [job, processor] : jobs) {
      processor.instance = instance;
      if (is_parked) processor.release = heartbeat.standby().release();
      by_job_[job].push_back(std::move(processor));
    }
  }
  for (const bus::RosterEntry& entry : controllers) {
    if (entry.leaving) continue;
    for (const v1::JobLoad& load : entry.heartbeat.jobs()) {
      if (load.trouble().empty()) continue;
      uncounted_[load.job()] = absl::StrCat("controller ", entry.heartbeat.instance().instance(),
                                            " cannot count its results: ", load.trouble());
    }
  }
}

std::string WorkView::TroubleWithCounting(const std::string& job) const {
  const auto found = uncounted_.find(job);
  return found == uncounted_.end() ? "" : found->second;
}

bool WorkView::LacksProcessor(const std::string& job) const { return !by_job_.contains(job); }

bool WorkView::Fits(const ledger::Batch& batch, const Processor& processor) {
  return batch.handler_version.empty() || processor.version.empty() ||
         processor.version == batch.handler_version;
}

bool WorkView::LacksVersion(const ledger::Batch& batch) const {
  const auto found = by_job_.find(batch.job);
  if (found == by_job_.end()) return false;
  return std::none_of(found->second.begin(), found->second.end(),
                      [&](const Processor& processor) { return Fits(batch, processor); });
}

std::string WorkView::TroubleOf(const Processor& processor) {
  if (!processor.release.empty()) {
    return absl::StrCat("is parked, `muster release ", processor.release, "` lets it go");
  }
  if (!processor.trouble.empty()) return processor.trouble;
  return processor.is_throttled ? "is throttled by the queue's store" : "";
}

std::string WorkView::TroubleWith(const ledger::Batch& batch) const {
  const auto found = by_job_.find(batch.job);
  if (found == by_job_.end()) {
    return absl::StrCat("no processor has the handler of job ", batch.job);
  }
  const Processors& all = found->second;
  Processors fit;
  std::set<std::string> versions;
  for (const Processor& processor : all) {
    if (!processor.version.empty()) versions.insert(processor.version);
    if (Fits(batch, processor)) fit.push_back(processor);
  }
  if (fit.empty()) {
    return absl::StrCat("no processor has version ", batch.handler_version,
                        " of the handler of job ", batch.job, ", but ",
                        absl::StrJoin(versions, ", "));
  }
  const auto can_work = [](const Processor& one) {
    return !one.version.empty() && TroubleOf(one).empty();
  };
  if (std::any_of(fit.begin(), fit.end(), can_work)) return "";
  // One whose program dies of some items works on the others, and may be at work now.
  const auto at_work = std::find_if(fit.begin(), fit.end(), [](const Processor& one) {
    return one.release.empty() && handler::TakesItems(one.trouble);
  });
  if (at_work != fit.end()) {
    return absl::StrCat("processor ", at_work->instance, " works on it, but ", at_work->trouble);
  }
  return absl::StrCat("no processor can work on it: ", AndMore(fit.front().instance, fit.size()),
                      ": ", TroubleOf(fit.front()));
}

WaitReasons::WaitReasons(Sources sources, std::string account, base::Clock* clock)
    : sources_(std::move(sources)), account_(std::move(account)), clock_(clock) {}

std::shared_ptr<const WorkView> WaitReasons::Look() {
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  if (view_ == nullptr || now - looked_ >= kLookEvery) {
    looked_ = now;
    view_ = std::make_shared<const WorkView>(
        sources_.processors(), sources_.has_controller(),
        sources_.controllers == nullptr ? std::vector<bus::RosterEntry>() : sources_.controllers());
  }
  return view_;
}

std::optional<std::string> WaitReasons::WhatAgentsStart(const std::string& job) {
  const std::string queue = item::InputQueue(account_, job, 0).name;
  base::MutexLock lock(&mu_);
  for (const v1::ScalingTarget& target : targets_) {
    const auto is_of_target = [&](const std::string& name) {
      return scaling::rules::MatchesQueue(name, queue);
    };
    if (std::none_of(target.queues().begin(), target.queues().end(), is_of_target)) continue;
    if (target.replicas().ready() > 0) {
      return absl::StrCat(": no replica of scaling target ", target.target(),
                          " has it; their logs say why");
    }
    const int wanted = target.decision().replicas();
    if (wanted > 0) {
      return absl::StrCat("; scaling target ", target.target(), " starts ", wanted,
                          target.trouble().empty() ? "" : ", but ", target.trouble());
    }
    return absl::StrCat("; scaling target ", target.target(),
                        " starts none: `muster scale explain --target ", target.target(),
                        "` says why");
  }
  return std::nullopt;
}

// Where no agent starts processors for the job, the user does.
std::string WaitReasons::WhatStartsProcessors(const std::string& job) {
  const absl::Duration now = clock_->Monotonic();
  bool ask = false;
  {
    base::MutexLock lock(&mu_);
    ask = now - asked_ >= kAskEvery;
    if (ask) asked_ = now;
  }
  if (ask) {
    std::vector<v1::ScalingTarget> targets = sources_.targets();
    base::MutexLock lock(&mu_);
    targets_ = std::move(targets);
  }
  if (std::optional<std::string> by_agent = WhatAgentsStart(job)) return *std::move(by_agent);
  const HandlerKind handler = HandlerOf(job);
  if (handler.server.empty()) return ": start a processor with it";
  return absl::StrCat(": start a processor, and a handler server of version ", handler.version,
                      " at ", handler.server, ", which it calls");
}

// Each processor has the version that the job file names, whichever server answers there.
std::string WaitReasons::WhatHasVersion(const ledger::Batch& batch) {
  const HandlerKind handler = HandlerOf(batch.job);
  if (!handler.is_of_job_file) return ": start a processor with it";
  std::string what = absl::StrCat(": apply the job with version ", batch.handler_version, " again");
  if (!handler.server.empty()) {
    absl::StrAppend(&what, " and start a handler server of that version at ", handler.server,
                    ", which processors call");
  }
  return absl::StrCat(what, ", or cancel the batch and submit it anew");
}

HandlerKind WaitReasons::HandlerOf(const std::string& job) {
  if (sources_.handler == nullptr) return {};
  const absl::Duration now = clock_->Monotonic();
  {
    base::MutexLock lock(&mu_);
    const auto found = handlers_.find(job);
    if (found != handlers_.end() && now - found->second.asked < kAskEvery) {
      return found->second.kind;
    }
  }
  HandlerKind kind = sources_.handler(job);
  base::MutexLock lock(&mu_);
  std::erase_if(handlers_,
                [&](const auto& entry) { return now - entry.second.asked >= kAskEvery; });
  handlers_[job] = {kind, now};
  return kind;
}

item::HeldSummary WaitReasons::HeldOf(const std::string& job) {
  if (sources_.held_keys == nullptr) return {};
  const absl::Duration now = clock_->Monotonic();
  {
    base::MutexLock lock(&mu_);
    const auto found = held_.find(job);
    if (found != held_.end() && now - found->second.asked < kAskEvery) return found->second.summary;
  }
  item::HeldSummary summary = sources_.held_keys(job);
  base::MutexLock lock(&mu_);
  std::erase_if(held_, [&](const auto& entry) { return now - entry.second.asked >= kAskEvery; });
  held_[job] = {summary, now};
  return summary;
}

void WaitReasons::Explain(batch::BatchStatus* status, absl::Duration patience) {
  const ledger::Batch& batch = status->batch;
  if (ledger::IsOver(batch.state)) return;
  const absl::Time since = status->counted.last_counted.value_or(batch.created);
  if (clock_->Now() - since < patience) return;
  const auto counted = static_cast<uint64_t>(std::max<int64_t>(status->counted.items(), 0));
  if (batch.items > 0 && counted >= batch.items) return;
  const std::shared_ptr<const WorkView> view = Look();
  // It is also what other problems then come from.
  if (view->has_controller() && !status->problem.ok()) return;
  std::string why = view->TroubleWith(batch);
  if (!view->has_controller()) {
    why = "its results are not counted, for no controller is heard: start one";
  } else if (!why.empty() && view->LacksProcessor(batch.job)) {
    absl::StrAppend(&why, WhatStartsProcessors(batch.job));
  } else if (!why.empty() && view->LacksVersion(batch)) {
    absl::StrAppend(&why, WhatHasVersion(batch));
  }
  if (why.empty()) why = view->TroubleWithCounting(batch.job);
  // While the batch moves, its held keys can wait. They wait for a person, also where a processor
  // still has the trouble by which they came to be held.
  if (view->has_controller() && clock_->Now() - since >= kAskEvery) {
    const std::string held = item::InWords(HeldOf(batch.job));
    why = absl::StrCat(held, held.empty() || why.empty() ? "" : "; ", why);
  }
  if (why.empty()) return;
  status->problem =
      absl::UnavailableError(absl::StrCat(why, " (nothing was counted since ", Time(since), ")"));
}

}  // namespace muster::initiator::api
