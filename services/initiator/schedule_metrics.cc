// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/schedule_metrics.h"

#include "absl/status/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator {

std::unique_ptr<telemetry::Reading> ReadSchedules(telemetry::Registry* registry,
                                                  const schedule::ScheduleRunner* runner) {
  const auto read = [runner](telemetry::Samples* samples) {
    const schedule::ScheduleCounts counts = runner->counts();
    samples->Set(telemetry::kSchedules, {"active"}, counts.active);
    samples->Set(telemetry::kSchedules, {"paused"}, counts.paused);
    samples->Set(telemetry::kSchedulesWithProblem, {}, counts.with_problem);
    const auto set = [samples](absl::string_view outcome, int64_t count) {
      samples->Set(telemetry::kScheduleOccurrences, {outcome}, static_cast<double>(count));
    };
    set("submitted", counts.submitted);
    set("missed", counts.missed);
    set("failed", counts.failed);
    return absl::OkStatus();
  };
  return telemetry::ReadAtScrape(
      registry, "schedules",
      {telemetry::kSchedules.entry(), telemetry::kSchedulesWithProblem.entry(),
       telemetry::kScheduleOccurrences.entry()},
      read);
}

}  // namespace muster::initiator
