// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_listeners.h"

#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::processor {

absl::Status StopAll(const std::vector<JobListener>& served, absl::Duration grace) {
  std::vector<std::future<absl::Status>> stops;
  stops.reserve(served.size());
  for (const JobListener& one : served) {
    stops.push_back(std::async(std::launch::async, [&one, grace] {
      return base::Annotate(one.listener->Stop(grace), absl::StrCat("job ", one.job));
    }));
  }
  absl::Status all;
  for (std::future<absl::Status>& stop : stops) all.Update(stop.get());
  return all;
}

void LoadReport::NotePause(const listener::QueueListener& listener, Metered* metered,
                           v1::JobLoad* load) const {
  if (listener.phase() != listener::ListenerPhase::kPaused) return metered->paused_since.reset();
  if (!metered->paused_since.has_value()) metered->paused_since = clock_->Now();
  if (listeners_->LacksWork(load->job())) return;
  load->set_trouble(absl::StrCat(
      "its workers are paused since ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *metered->paused_since, absl::UTCTimeZone()),
      ", `muster worker resume` lets them go on"));
}

void LoadReport::AddTo(absl::Duration window, v1::Heartbeat* heartbeat) {
  std::map<std::string, std::string> open_troubles = listeners_->OpenTroubles();
  std::map<std::string, Metered> meters;
  for (const JobListener& served : listeners_->Listeners()) {
    v1::HandlerVersion* const handler = heartbeat->mutable_instance()->add_handlers();
    handler->set_job(served.job);
    handler->set_version(served.handler_version);
    // A new listener counts from zero, so its meter begins anew, too.
    const auto before = meters_.find(served.job);
    const bool same = before != meters_.end() && before->second.listener.lock() == served.listener;
    Metered metered = same ? std::move(before->second)
                           : Metered{served.listener, listener::LoadMeter(served.job)};
    v1::JobLoad* const load = heartbeat->add_jobs();
    *load = metered.meter.Measure(
        {served.listener->Load(), served.listener->counters(), served.transactions}, window);
    NotePause(*served.listener, &metered, load);
    if (const auto trouble = open_troubles.extract(served.job)) load->set_trouble(trouble.mapped());
    meters.emplace(served.job, std::move(metered));
  }
  meters_ = std::move(meters);
  for (const auto& [job, trouble] : open_troubles) {
    v1::JobLoad* const load = heartbeat->add_jobs();
    load->set_job(job);
    load->set_trouble(trouble);
  }
}

}  // namespace muster::processor
