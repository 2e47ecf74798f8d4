#include "services/processor/job_listeners.h"

#include <future>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

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

}  // namespace muster::processor
