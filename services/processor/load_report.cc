#include "services/processor/load_report.h"

#include <utility>
#include <vector>

namespace muster::processor {

void LoadReport::AddTo(absl::Duration window, v1::Heartbeat* heartbeat) {
  std::map<std::string, Metered> meters;
  for (const JobListener& served : listeners_->Listeners()) {
    v1::HandlerVersion* const handler = heartbeat->mutable_instance()->add_handlers();
    handler->set_job(served.job);
    handler->set_version(served.handler_version);
    // A job that has another listener since begins anew, as its totals do.
    const auto before = meters_.find(served.job);
    const bool same = before != meters_.end() && before->second.listener.lock() == served.listener;
    Metered metered = same ? std::move(before->second)
                           : Metered{served.listener, job_load::LoadMeter(served.job)};
    *heartbeat->add_jobs() = metered.meter.Measure(
        {served.listener->Load(), served.listener->counters(), served.transactions}, window);
    meters.emplace(served.job, std::move(metered));
  }
  meters_ = std::move(meters);
}

}  // namespace muster::processor
