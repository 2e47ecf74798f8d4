#include "services/processor/load_report.h"

#include <utility>
#include <vector>

namespace muster::processor {

void LoadReport::AddTo(absl::Duration window, v1::Heartbeat* heartbeat) {
  std::map<std::string, job_load::LoadMeter> meters;
  for (const JobListener& served : listeners_->Listeners()) {
    v1::HandlerVersion* const handler = heartbeat->mutable_instance()->add_handlers();
    handler->set_job(served.job);
    handler->set_version(served.handler_version);
    // A job that was gone and is back begins anew.
    auto meter = meters_.extract(served.job);
    auto& [job, used] = meter.empty() ? *meters.emplace(served.job, served.job).first
                                      : *meters.insert(std::move(meter)).position;
    *heartbeat->add_jobs() = used.Measure(
        {served.listener->Load(), served.listener->counters(), served.transactions}, window);
  }
  meters_ = std::move(meters);
}

}  // namespace muster::processor
